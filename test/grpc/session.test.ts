import { Metadata, status } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { anonymousCaller } from "../../src/core/caller.js";
import type { CallContext } from "../../src/core/region.js";
import { keepSecret, told } from "../helpers/secrets.js";
import { addressOf, createClient, createTestFace, startServer, type TestFace } from "./harness.js";

const unknown = "the session is unknown or has ended; open a new one, or send no cudashm-session";

/** A face that listens, and calls of it with these secrets in their metadata. */
async function start() {
  const face = createTestFace();
  const address = addressOf(await startServer(face));
  const metadataCallerOf = (service: string) => {
    const client = createClient(address, service);
    return (method: string, request: object, metadata: Metadata) =>
      new Promise<[string, string]>((resolve) => {
        // biome-ignore lint/suspicious/noExplicitAny: grpc-js types dynamic clients no closer.
        (client as any)[method](request, metadata, (error: { code: number; details: string } | null) => {
          told(error);
          resolve([status[error?.code ?? 0] ?? "", error?.details ?? ""]);
        });
      });
  };
  const callerOf = (service: string) => {
    const callWith = metadataCallerOf(service);
    return (method: string, request: object, ...secrets: string[]) => {
      const metadata = new Metadata();
      for (const secret of secrets) metadata.add("cudashm-session", secret);
      return callWith(method, request, metadata);
    };
  };
  return {
    face,
    callWith: metadataCallerOf("inference.GRPCInferenceService"),
    call: callerOf("inference.GRPCInferenceService"),
    health: callerOf("grpc.health.v1.Health"),
  };
}

function openSession({ registry }: TestFace, caller = anonymousCaller) {
  const hold = registry.sessions.open({ caller, resumeGraceMs: 0 });
  keepSecret("a session's secret", Buffer.from(hold.secret));
  return hold;
}

test("a call with its secret belongs to the session", async () => {
  const { face, call } = await start();
  const contexts: CallContext[] = [];
  const register = face.registry.register.bind(face.registry);
  face.registry.register = (request, context) => {
    const { owner, isAdmin = false, session = null, protocol, requestId } = context;
    contexts.push({ owner, isAdmin, session, protocol, requestId });
    return register(request, context);
  };
  const { secret, session } = openSession(face);
  const good = face.goodRegister;
  expect(await call("CudaSharedMemoryRegister", { ...good, name: "in" }, secret)).toEqual(["OK", ""]);
  expect(await call("CudaSharedMemoryRegister", { ...good, name: "out" })).toEqual(["OK", ""]);
  expect(contexts).toMatchObject([
    { owner: `session:${session.id}`, isAdmin: false, session: session.id },
    { owner: "anonymous", isAdmin: false, session: null },
  ]);
});

test("a secret of no session is refused wherever it is sent, health excepted", async () => {
  const { face, call, health } = await start();
  const hold = openSession(face);
  hold.end();
  for (const method of [
    "CudaSharedMemoryRegister",
    "CudaSharedMemoryStatus",
    "CudaSharedMemoryUnregister",
    "SystemSharedMemoryStatus",
    "ServerMetadata",
  ]) {
    expect([method, ...(await call(method, {}, hold.secret))]).toEqual([method, "UNAUTHENTICATED", unknown]);
  }
  for (const method of ["ServerLive", "ServerReady"]) {
    expect(await call(method, {}, hold.secret)).toEqual(["OK", ""]);
  }
  expect(await health("Check", {}, hold.secret)).toEqual(["OK", ""]);
  expect(face.faults).toEqual([]);
});

test("two secrets, or one sent twice, are none", async () => {
  const { face, call } = await start();
  const [one, other] = [openSession(face), openSession(face)];
  for (const secrets of [
    [one.secret, other.secret],
    [one.secret, one.secret],
  ]) {
    expect(await call("CudaSharedMemoryStatus", {}, ...secrets)).toEqual(["UNAUTHENTICATED", unknown]);
  }
});

test("a secret that comes as bytes is refused, told how to send it", async () => {
  const { face, callWith } = await start();
  const { secret } = openSession(face);
  for (const text of [undefined, secret]) {
    const metadata = new Metadata();
    metadata.set("cudashm-session-bin", Buffer.from(secret));
    if (text !== undefined) metadata.set("cudashm-session", text);
    expect(await callWith("CudaSharedMemoryStatus", {}, metadata)).toEqual([
      "UNAUTHENTICATED",
      "a session's secret is text; send it as cudashm-session",
    ]);
  }
});

test("an empty secret, or one with anything around it, is none", async () => {
  const { face, call } = await start();
  const { secret } = openSession(face);
  for (const sent of ["", `${secret},`, `"${secret}"`, `${secret} ${secret}`]) {
    expect(await call("CudaSharedMemoryStatus", {}, sent)).toEqual(["UNAUTHENTICATED", unknown]);
  }
});

test("the session of another is refused", async () => {
  const { face, call } = await start();
  const { secret } = openSession(face, { owner: "alice", isAdmin: false, session: null });
  expect(await call("CudaSharedMemoryStatus", {}, secret)).toEqual([
    "PERMISSION_DENIED",
    "the session was opened by another; call with the token that it was opened with",
  ]);
});
