import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { internalErrorText } from "../../src/core/errors.js";
import { HoldRequest, ReadContentsRequest, WatchRequest } from "../../src/grpc/gen/cudashm/v1/registry.js";
import { createDeferred } from "../helpers/deferred.js";
import { context, request } from "../helpers/registry-harness.js";
import { addressOf, createTestFace, startServer, type TestFace } from "./harness.js";
import { callRaw } from "./raw-stream.js";
import { createRegistryClient, hold } from "./registry-client.js";

const never = new AbortController().signal;

async function start(options: Parameters<typeof createTestFace>[0] = {}) {
  const face = createTestFace(options);
  const server = await startServer(face, { allowContents: true });
  const address = addressOf(server);
  return { face, server, address, client: createRegistryClient(address) };
}

async function registerLarge({ registry, driver }: TestFace): Promise<void> {
  const byteSize = 16 * 1024 * 1024;
  const { handle } = driver.allocate(byteSize);
  await registry.register(request("large", handle, { byteSize: BigInt(byteSize) }), context);
}

async function openSession(address: string) {
  const session = connectHttp2(`http://${address}`);
  onTestFinished(() => session.destroy());
  session.on("error", () => {});
  await once(session, "connect");
  return session;
}

const readLarge = ReadContentsRequest.encode({ name: "large", offset: 0n }).finish();
const path = (method: string) => `/cudashm.v1.Registry/${method}`;

describe("the stop of the service", () => {
  test("takes less than two seconds with every kind of stream open, read or not", async () => {
    const { face, server, address, client } = await start();
    await registerLarge(face);
    let copies = 0;
    face.driver.beforeCopy = () => {
      copies++;
    };
    const holding = await hold(client);
    const watching = client.follow("Watch");
    await watching.next();
    const session = await openSession(address);
    const unread = callRaw(session, path("ReadContents"), readLarge);
    unread.pause();
    await expect.poll(() => copies).toBeGreaterThan(0);
    const begun = performance.now();
    face.shutdown.abort();
    expect(await holding.end).toMatchObject({ code: "UNAVAILABLE" });
    expect(await watching.end).toMatchObject({ code: "UNAVAILABLE" });
    await server.close(never);
    expect(performance.now() - begun).toBeLessThan(2000);
    expect(face.registry.status("large").pins).toBe(0);
  });

  test("lets a peer who reads have all that it was sent", async () => {
    const { face, server, address } = await start();
    await registerLarge(face);
    const reading = callRaw(await openSession(address), path("ReadContents"), readLarge);
    await expect.poll(() => reading.received()).toBeGreaterThan(0);
    face.shutdown.abort();
    expect(await reading.status).toEqual({ code: "UNAVAILABLE", text: "Server exiting" });
    await server.close(never);
  });

  test("waits for a call that the driver keeps, longer than for peers who do not read", async () => {
    const { face, server, client } = await start();
    await client.call("Register", face.goodRegister);
    const [closing, closed] = [createDeferred(), createDeferred()];
    face.driver.beforeClose = () => {
      closing.resolve();
      return closed.promise;
    };
    const leaving = client.call("Unregister", { name: "r" });
    await closing.promise;
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    onTestFinished(() => void vi.useRealTimers());
    const stopped = server.close(never);
    vi.advanceTimersByTime(60_000);
    closed.resolve();
    expect((await leaving).response).toEqual({ closed: true, pins: "0" });
    await stopped;
  });

  test("refuses streams that begin after it", async () => {
    const { face, client } = await start();
    face.shutdown.abort();
    for (const method of ["Hold", "Watch"]) {
      expect(await client.follow(method).end).toMatchObject({ code: "UNAVAILABLE", text: "Server exiting" });
    }
    expect(await client.write().answer).toMatchObject({ code: "UNAVAILABLE" });
  });
});

describe("a deadline", () => {
  // By plain HTTP/2, since a gRPC client cancels by its own clock.
  test.each([
    ["Hold", HoldRequest.encode({ resume: "", resumeGrace: undefined }).finish()],
    ["Watch", WatchRequest.encode({ name: "" }).finish()],
    ["ReadContents", readLarge],
  ])("ends %s, and nothing is written after it", async (method, message) => {
    const { face, server, address } = await start();
    await registerLarge(face);
    const { handle } = face.driver.allocate(64);
    const session = await openSession(address);
    const headers = { "grpc-timeout": "100m" };
    const calls = Array.from({ length: 5 }, () => callRaw(session, path(method), message, { headers }));
    const over = Promise.all(calls.map(({ status }) => status));
    let isOver = false;
    void over.then(() => {
      isOver = true;
    });
    // So that there is something to write at every moment.
    while (!isOver) {
      await face.registry.register(request("busy", handle), context);
      await face.registry.unregister("busy", context);
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    for (const { code } of await over) expect(code).toBe("DEADLINE_EXCEEDED");
    expect(face.faults).toEqual([]);
    await expect.poll(() => face.registry.status("large").pins).toBe(0);
    face.shutdown.abort();
    await server.close(never);
  });

  test("ends a read that its peer has stopped to read", async () => {
    const { face, address } = await start();
    await registerLarge(face);
    const session = await openSession(address);
    const headers = { "grpc-timeout": "50m" };
    const reading = callRaw(session, path("ReadContents"), readLarge, { headers });
    reading.pause();
    await expect.poll(() => face.registry.status("large").pins).toBe(1);
    // Of the same deadline, and begun later.
    const later = callRaw(session, path("Watch"), WatchRequest.encode({ name: "" }).finish(), { headers });
    expect(await later.status).toMatchObject({ code: "DEADLINE_EXCEEDED" });
    reading.resume();
    expect(await reading.status).toMatchObject({ code: "DEADLINE_EXCEEDED" });
    await expect.poll(() => face.registry.status("large").pins).toBe(0);
    expect(face.faults).toEqual([]);
  });

  test("ends an upload", async () => {
    const { face, address } = await start();
    await registerLarge(face);
    const session = await openSession(address);
    const headers = { "grpc-timeout": "50m" };
    const window = Buffer.from([0x0a, 7, 0x0a, 5, ...Buffer.from("large")]);
    const upload = callRaw(session, path("WriteContents"), window, { headers, endStream: false });
    expect(await upload.status).toMatchObject({ code: "DEADLINE_EXCEEDED" });
    await expect.poll(() => face.registry.status("large").pins).toBe(0);
    expect(face.faults).toEqual([]);
  });
});

describe("a request that is no message", () => {
  // Each has a message in it that ends at a tag 0; what follows is a name that the decoder must not find.
  const name = [0x0a, 1, 0x72];
  test.each([
    ["Get", [0x12, 4, 0, ...name]],
    ["Register", [0x3a, 4, 0, ...name]],
    ["Register", [0x42, 4, 0, ...name]],
    ["Register", [0x4a, 4, 0, ...name]],
    ["Renew", [0x12, 4, 0, ...name]],
    ["Unregister", [0x1a, 4, 0, ...name]],
    ["Hold", [0x12, 4, 0, ...name]],
    ["Unregister", [0x0a, 0x05]],
    ["Hold", [0]],
    ["Watch", [0x12, 1, 0xff]],
    ["ReadContents", [0x0c]],
  ])("is refused by %s", async (method, bytes) => {
    const { face, address } = await start();
    await registerLarge(face);
    const call = callRaw(await openSession(address), path(method), Buffer.from(bytes));
    expect(await call.status).toMatchObject({
      code: "INVALID_ARGUMENT",
      text: expect.stringContaining("the request cannot be decoded: "),
    });
    expect(face.faults).toEqual([]);
    expect(face.registry.revision).toBe(1n);
  });

  test("is refused where it is too large", async () => {
    const { face, address } = await start();
    const call = callRaw(await openSession(address), path("WriteContents"), Buffer.alloc(64 * 1024 + 1), {
      endStream: false,
    });
    expect(await call.status).toMatchObject({ code: "RESOURCE_EXHAUSTED" });
    expect(face.faults).toEqual([]);
  });
});

test("an unknown error is our fault in every kind of call: a fixed text out, the cause in the log", async () => {
  const { face, client } = await start();
  const broken = () => {
    throw new TypeError("undefined is not a function");
  };
  Object.assign(face.registry, { list: broken, watch: broken, pin: broken, status: broken });
  Object.assign(face.registry.sessions, { open: broken });
  const fault = { code: "INTERNAL", text: internalErrorText };
  expect(await client.call("List")).toMatchObject(fault);
  for (const method of ["Hold", "Watch", "ReadContents"]) {
    const { code, text, trailers } = await client.follow(method, { ...(method !== "Hold" && { name: "r" }) })
      .end;
    expect({ code, text }).toEqual(fault);
    expect(face.faults.at(-1)).toEqual({
      requestId: trailers.get("x-request-id")[0],
      protocol: "grpc",
      error: expect.any(TypeError),
    });
  }
  const { stream, answer } = client.write();
  stream.write({ window: { name: "r" } });
  expect(await answer).toMatchObject(fault);
  expect(face.faults).toHaveLength(5);
});

test("every call is counted and traced from its begin to its end, by the names that HTTP has", async () => {
  const counted: string[] = [];
  const traced: string[] = [];
  const { face, client } = await start({
    observeOperation: (_protocol, operation) => ({
      begin: () => 0,
      end: (_startedAt, outcome) => void counted.push(`${operation} ${outcome}`),
    }),
    traceOperation: (operation) => () => ({
      run: (work) => work(),
      end: (status) => void traced.push(`${operation.protocol === "grpc" && operation.method} ${status}`),
    }),
  });
  await client.call("Register", face.goodRegister);
  const holding = await hold(client);
  const watching = client.follow("Watch");
  await watching.next();
  await client.follow("ReadContents", { name: "r" }).end;
  const { stream, answer } = client.write();
  stream.write({ window: { name: "r" } });
  stream.end();
  await answer;
  await client.call("Checksum", { name: "none" });
  expect(counted).toEqual([
    "registerRegion OK",
    "readRegionContents OK",
    "writeRegionContents OK",
    "checksumRegion NOT_FOUND",
  ]);
  holding.cancel();
  await expect.poll(() => counted.at(-1)).toBe("holdSession CANCELLED");
  face.shutdown.abort();
  await watching.end;
  await expect.poll(() => counted.at(-1)).toBe("watchRegions UNAVAILABLE");
  await expect
    .poll(() => traced)
    .toEqual(["Register 0", "ReadContents 0", "WriteContents 0", "Checksum 5", "Hold 1", "Watch 14"]);
});
