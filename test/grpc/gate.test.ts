import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { type CallOptions, type Client, credentials, loadPackageDefinition, Metadata } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { describe, expect, onTestFinished, test } from "vitest";
import { frame, grpcMessage, settingsFrame } from "../../bench/load/http2-frames.js";
import { Gate } from "../../src/core/gate.js";
import { InFlight } from "../../src/core/in-flight.js";
import { Principals } from "../../src/core/principals.js";
import { Restrictions } from "../../src/core/restrictions.js";
import { callHeaders, flags, headerBlock, preface, types } from "../fuzz/http2-bytes.js";
import { createDeferred } from "../helpers/deferred.js";
import { addressOf, createClient, createRawCaller, createTestFace, startServer } from "./harness.js";

const inference = "inference.GRPCInferenceService";

/** By name: the value, or each of several. */
type Headers = Readonly<Record<string, string | readonly string[]>>;

/** Calls with metadata; gives the name of the status and its text. */
function callerWith(address: string, service = inference) {
  const client = createClient(address, service);
  return (method: string, request: object = {}, headers: Headers = {}, options: CallOptions = {}) =>
    new Promise<{ code: number; text: string }>((resolve) => {
      const metadata = new Metadata();
      for (const [key, values] of Object.entries(headers)) {
        for (const value of [values].flat()) metadata.add(key, value);
      }
      // biome-ignore lint/suspicious/noExplicitAny: grpc-js types dynamic clients no closer.
      (client as any)[method](request, metadata, options, (error: { code: number; details: string } | null) =>
        resolve({ code: error?.code ?? 0, text: error?.details ?? "" }),
      );
    });
}

/** Calls with header lines that no library sends. */
function callWithLines(port: number, lines: readonly (readonly [string, string])[]): void {
  const headers = callHeaders(`/${inference}/CudaSharedMemoryStatus`, lines);
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => {
    socket.destroy();
  });
  socket.write(
    Buffer.concat([
      preface,
      settingsFrame([]),
      frame(types.headers, flags.endHeaders, 1, headerBlock(headers)),
      frame(types.data, flags.endStream, 1, grpcMessage(new Uint8Array())),
    ]),
  );
}

/** Status and text that a stream of no answers ends with. */
function endOf(stream: NodeJS.EventEmitter): Promise<{ code: number; text: string }> {
  return new Promise((resolve) => {
    stream.on("data", () => resolve({ code: 0, text: "" }));
    stream.on("error", (error: { code: number; details: string }) =>
      resolve({ code: error.code, text: error.details }),
    );
  });
}

async function start(gate: Gate) {
  const face = createTestFace({ gate });
  const address = addressOf(await startServer(face));
  return { face, address, call: callerWith(address), health: callerWith(address, "grpc.health.v1.Health") };
}

const aliceOnly = () => {
  const parsed = Principals.parse(`alice: ${createHash("sha256").update("alice-token").digest("hex")}`);
  if (!(parsed instanceof Principals)) throw new Error(parsed.join("\n"));
  return parsed;
};
const asAlice = { authorization: "Bearer alice-token" };
const unauthenticated = {
  code: 16,
  text: "this service wants a token; send it as 'authorization: Bearer <token>'",
};

describe("a restricted protocol", () => {
  const refused = {
    code: 14,
    text: "This protocol is restricted, expecting header 'triton-grpc-protocol-admin-key'",
  };
  const restricted = (categories: ("shared-memory" | "health" | "metadata")[]) =>
    new Gate({ restrictions: Restrictions.ofGrpc([{ categories, key: "Admin-Key", value: "s3cret" }]) });

  test("is refused without its metadata, before the message is looked at", async () => {
    const { face, address, call } = await start(restricted(["shared-memory"]));
    for (const method of [
      "CudaSharedMemoryStatus",
      "CudaSharedMemoryUnregister",
      "SystemSharedMemoryStatus",
    ]) {
      expect(await call(method)).toEqual(refused);
      expect(await call(method, {}, { "triton-grpc-protocol-admin-key": "wrong" })).toEqual(refused);
    }
    expect(await call("CudaSharedMemoryRegister", face.goodRegister)).toEqual(refused);
    expect(face.registry.statuses()).toEqual([]);
    const malformed = await createRawCaller(address)("CudaSharedMemoryRegister", Buffer.from([0xff]));
    expect([malformed.code, malformed.text]).toEqual(["UNAVAILABLE", refused.text]);
    expect(face.faults).toEqual([]);
  });

  test("is refused with its metadata twice", async () => {
    const { call } = await start(restricted(["shared-memory"]));
    for (const values of [
      ["s3cret", "s3cret"],
      ["s3cret", "other"],
      ["other", "s3cret"],
      ["s3cret", ""],
    ]) {
      const headers = { "triton-grpc-protocol-admin-key": values };
      expect([values, await call("CudaSharedMemoryStatus", {}, headers)]).toEqual([values, refused]);
    }
  });

  test("is answered with its metadata, and nothing else needs any", async () => {
    const { face, call, health } = await start(restricted(["shared-memory"]));
    const headers = { "triton-grpc-protocol-admin-key": "s3cret" };
    expect(await call("CudaSharedMemoryRegister", face.goodRegister, headers)).toEqual({ code: 0, text: "" });
    for (const method of ["ServerLive", "ServerReady", "ServerMetadata"]) {
      expect((await call(method)).code).toBe(0);
    }
    expect((await health("Check")).code).toBe(0);
  });

  test("of health takes every way to ask for it with it", async () => {
    const { address, call, health } = await start(restricted(["health"]));
    expect(await call("ServerLive")).toEqual(refused);
    expect(await call("ServerReady")).toEqual(refused);
    expect(await health("Check")).toEqual(refused);
    expect(await health("List")).toEqual(refused);
    // biome-ignore lint/suspicious/noExplicitAny: grpc-js types dynamic clients no closer.
    const client = createClient(address, "grpc.health.v1.Health") as any;
    expect(await endOf(client.Watch({}))).toEqual(refused);
    const metadata = new Metadata();
    metadata.set("triton-grpc-protocol-admin-key", "s3cret");
    const watch = client.Watch({}, metadata);
    expect(await endOf(watch)).toEqual({ code: 0, text: "" });
    watch.cancel();
    expect((await call("ServerMetadata")).code).toBe(0);
  });
});

describe("where tokens are wanted", () => {
  const gate = () => new Gate({ principals: aliceOnly });

  test("a call without one is refused", async () => {
    const { face, call } = await start(gate());
    expect(await call("CudaSharedMemoryRegister", face.goodRegister)).toEqual(unauthenticated);
    expect(await call("ServerMetadata", {}, { authorization: "Basic YTpi" })).toEqual(unauthenticated);
    expect((await call("CudaSharedMemoryStatus", {}, { authorization: "Bearer no" })).code).toBe(16);
    expect(face.registry.statuses()).toEqual([]);
  });

  test("the second of two tokens lets nobody in", async () => {
    const outcomes: string[] = [];
    const observeOperation = () => ({
      begin: () => 0,
      end: (_startedAt: number, outcome: string) => outcomes.push(outcome),
    });
    const face = createTestFace({ gate: gate(), observeOperation });
    const { port } = (await startServer(face)).address ?? { port: 0 };
    for (const first of ["Bearer no", "", "Basic YTpi"]) {
      callWithLines(port, [
        ["authorization", first],
        ["authorization", asAlice.authorization],
      ]);
    }
    await expect.poll(() => outcomes).toEqual(Array(3).fill("UNAUTHENTICATED"));
  });

  test("a region belongs to whoever's token registered it", async () => {
    const { face, call } = await start(gate());
    expect(await call("CudaSharedMemoryRegister", face.goodRegister, asAlice)).toEqual({ code: 0, text: "" });
    expect(face.registry.statuses().map(({ owner }) => owner)).toEqual(["alice"]);
  });

  test("health is open to all, reflection is not", async () => {
    const { address, call, health } = await start(gate());
    expect((await health("Check")).code).toBe(0);
    expect((await call("ServerLive")).code).toBe(0);
    expect((await call("ServerReady")).code).toBe(0);
    const folder = join(dirname(createRequire(import.meta.url).resolve("@grpc/reflection")), "../proto");
    const loaded = loadPackageDefinition(
      loadSync("grpc/reflection/v1/reflection.proto", { includeDirs: [folder], oneofs: true }),
    );
    // biome-ignore lint/suspicious/noExplicitAny: grpc-js types dynamic clients no closer.
    const { ServerReflection } = (loaded as any).grpc.reflection.v1;
    const client: Client = new ServerReflection(address, credentials.createInsecure());
    onTestFinished(() => client.close());
    const metadata = new Metadata();
    metadata.set("authorization", asAlice.authorization);
    for (const [sent, expected] of [
      [new Metadata(), unauthenticated],
      [metadata, { code: 0, text: "" }],
    ] as const) {
      // biome-ignore lint/suspicious/noExplicitAny: as above.
      const stream = (client as any).serverReflectionInfo(sent);
      const end = endOf(stream);
      stream.write({ listServices: "" });
      expect(await end).toEqual(expected);
      stream.end();
    }
  });
});

describe("a limit of requests in flight", () => {
  test("refuses one more, health excepted, and forgets a call that was answered or cancelled", async () => {
    const { face, call, health } = await start(new Gate({ inFlight: new InFlight(1) }));
    for (const ending of ["answered", "cancelled"]) {
      const [opening, opened] = [createDeferred(), createDeferred()];
      face.driver.beforeOpen = () => {
        opening.resolve();
        return opened.promise;
      };
      const deadline = ending === "cancelled" ? { deadline: Date.now() + 300 } : {};
      const slow = call("CudaSharedMemoryRegister", { ...face.goodRegister, name: ending }, {}, deadline);
      await opening.promise;
      expect(await call("CudaSharedMemoryStatus")).toEqual({
        code: 8,
        text: "as many requests are being answered as this service takes at once (1, --max-requests-in-flight); try again later",
      });
      expect((await health("Check")).code).toBe(0);
      if (ending === "answered") opened.resolve();
      expect((await slow).code).toBe(ending === "answered" ? 0 : 4);
      opened.resolve();
      for (let i = 0; i < 3; i++) {
        expect((await call("CudaSharedMemoryStatus")).code).toBe(0);
        expect((await call("CudaSharedMemoryStatus", { name: "none" })).code).toBe(5);
      }
      expect((await call("CudaSharedMemoryUnregister")).code).toBe(0);
    }
  });
});

test("a connection that is one too many is closed, and another taken once one is gone", async () => {
  const { port } = (await startServer(createTestFace(), { maxConnections: 1 })).address ?? { port: 0 };
  const open = () => {
    const socket = connect(port, "127.0.0.1");
    onTestFinished(() => {
      socket.destroy();
    });
    socket.on("error", () => {});
    // The server speaks first where it takes a connection.
    const isTaken = new Promise<boolean>((resolve) => {
      socket.once("data", () => resolve(true));
      socket.once("close", () => resolve(false));
    });
    return { socket, isTaken };
  };
  const first = open();
  expect(await first.isTaken).toBe(true);
  expect(await open().isTaken).toBe(false);
  first.socket.destroy();
  await expect.poll(() => open().isTaken).toBe(true);
});
