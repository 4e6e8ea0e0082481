import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { ReadContentsRequest, WriteContentsRequest } from "../../src/grpc/gen/cudashm/v1/registry.js";
import { crc32c } from "../helpers/crc32c.js";
import { createDeferred } from "../helpers/deferred.js";
import type { FakeDriver } from "../helpers/fake-driver.js";
import { context, request } from "../helpers/registry-harness.js";
import { addressOf, createTestFace, startServer } from "./harness.js";
import { callRaw } from "./raw-stream.js";
import { createRegistryClient, type Following, type RegistryClient } from "./registry-client.js";

const drivers: FakeDriver[] = [];

afterEach(() => {
  // Whatever a test did, no mapping is closed twice.
  for (const driver of drivers.splice(0)) expect(driver.redundantCloses).toBe(0);
});

/** A face that serves contents, and a region `r` of `byteSize` random bytes. */
async function start(byteSize: number, allowContents = true) {
  const face = createTestFace();
  drivers.push(face.driver);
  const server = await startServer(face, { allowContents });
  const allocation = face.driver.allocate(byteSize);
  allocation.bytes.set(randomBytes(byteSize));
  await face.registry.register(request("r", allocation.handle, { byteSize: BigInt(byteSize) }), context);
  const address = addressOf(server);
  return { face, server, address, bytes: allocation.bytes, client: createRegistryClient(address) };
}

async function readAll(stream: Following): Promise<{ code: string; text: string; pieces: Buffer[] }> {
  const { code, text } = await stream.end;
  const pieces: Buffer[] = [];
  while (stream.waiting() > 0) pieces.push((await stream.next()).data);
  return { code, text, pieces };
}

/** Sends a window and data, each message once the one before was taken. */
async function upload(client: RegistryClient, messages: readonly object[]) {
  const { stream, answer } = client.write();
  for (const message of messages) {
    const isOver = await Promise.race([
      answer.then(() => true),
      new Promise<boolean>((resolve) => stream.write(message, () => resolve(false))),
    ]);
    if (isOver) return answer;
  }
  stream.end();
  return answer;
}

const messageBytes = 63 * 1024;

function dataOf(bytes: Uint8Array): { data: Buffer }[] {
  const messages: { data: Buffer }[] = [];
  for (let at = 0; at < bytes.length; at += messageBytes) {
    messages.push({ data: Buffer.from(bytes.subarray(at, at + messageBytes)) });
  }
  return messages;
}

describe("ReadContents", () => {
  test("gives all bytes in order, in messages of 256 KiB at most", async () => {
    const { bytes, client, face } = await start(1024 * 1024 + 17);
    const { code, pieces } = await readAll(client.follow("ReadContents", { name: "r" }));
    expect(code).toBe("OK");
    expect(pieces.map(({ length }) => length)).toEqual([262_144, 262_144, 262_144, 262_144, 17]);
    expect(Buffer.concat(pieces).equals(bytes)).toBe(true);
    expect(face.registry.status("r").pins).toBe(0);
  });

  test.each([
    [{ offset: "10" }, 10, 4096],
    [{ offset: "10", byte_size: "5" }, 10, 15],
    [{ byte_size: "0" }, 0, 0],
    [{ offset: "4096" }, 4096, 4096],
  ])("gives the bytes of %j", async (range, from, to) => {
    const { bytes, client } = await start(4096);
    const { code, pieces } = await readAll(client.follow("ReadContents", { name: "r", ...range }));
    expect(code).toBe("OK");
    expect(Buffer.concat(pieces).equals(bytes.subarray(from, to))).toBe(true);
  });

  test.each([
    [{ offset: "4097" }, "OUT_OF_RANGE", /^0 bytes at offset 4097 are not within the 4096 bytes/],
    [{ offset: "1", byte_size: "4096" }, "OUT_OF_RANGE", /^4096 bytes at offset 1/],
    [
      { offset: "18446744073709551615", byte_size: "18446744073709551615" },
      "OUT_OF_RANGE",
      /^18446744073709551615/,
    ],
    [{ name: "none" }, "NOT_FOUND", /'none'$/],
    [{ name: "" }, "INVALID_ARGUMENT", /is empty$/],
  ])("refuses %j", async (query, code, text) => {
    const { client, face } = await start(4096);
    for (const answer of [
      await client.follow("ReadContents", { name: "r", ...query }).end,
      await client.call("Checksum", { name: "r", ...query }),
    ]) {
      expect(answer).toMatchObject({ code, text: expect.stringMatching(text) });
    }
    expect(face.faults).toEqual([]);
  });

  test("of a client who left lets go once the copy under way has ended", async () => {
    const { client, face } = await start(4096);
    const [copying, copied] = [createDeferred(), createDeferred()];
    face.driver.beforeCopy = () => {
      copying.resolve();
      return copied.promise;
    };
    const stream = client.follow("ReadContents", { name: "r" });
    await copying.promise;
    stream.cancel();
    await stream.end;
    await client.call("List");
    expect(face.registry.status("r").pins).toBe(1);
    copied.resolve();
    await expect.poll(() => face.registry.status("r").pins).toBe(0);
    expect(face.faults).toEqual([]);
  });

  test("holds no more than a message for a peer who does not read, and lets go of it by force", async () => {
    const { face, address, client } = await start(16 * 1024 * 1024);
    let copies = 0;
    face.driver.beforeCopy = () => {
      copies++;
    };
    const session = connectHttp2(`http://${address}`);
    onTestFinished(() => session.destroy());
    const message = ReadContentsRequest.encode({ name: "r", offset: 0n }).finish();
    const reading = callRaw(session, "/cudashm.v1.Registry/ReadContents", message);
    reading.pause();
    await expect.poll(() => copies).toBeGreaterThan(0);
    for (let calls = 0; calls < 50; calls++) await client.call("List");
    // What the peer's window and its library's buffer take, and one that waits.
    expect(copies).toBeLessThanOrEqual(2);
    const forced = await client.call("Unregister", { name: "r", force: true });
    expect(forced.response).toEqual({ closed: true, pins: "0" });
    reading.resume();
    expect(await reading.status).toMatchObject({
      code: "FAILED_PRECONDITION",
      text: "shared memory region 'r' was unregistered by force",
    });
    expect(face.faults).toEqual([]);
  });

  test("that the driver refuses is told as a fault of the service", async () => {
    const { client, face } = await start(4096);
    face.driver.beforeCopy = () => Promise.reject(new Error("the bus at 0xdeadbeef"));
    expect(await client.follow("ReadContents", { name: "r" }).end).toMatchObject({
      code: "INTERNAL",
      text: "failed to copy the memory of shared memory region 'r': internal error; the cause is in the service's log",
    });
    expect(face.faults).toHaveLength(1);
    expect(face.registry.status("r").pins).toBe(0);
  });
});

describe("WriteContents", () => {
  test("of a peer who sends no more is answered when the region is taken by force", async () => {
    const { address, client, face } = await start(4096);
    const session = connectHttp2(`http://${address}`);
    onTestFinished(() => session.destroy());
    const window = { part: { $case: "window", value: { name: "r", offset: 0n } } } as const;
    const call = callRaw(
      session,
      "/cudashm.v1.Registry/WriteContents",
      WriteContentsRequest.encode(window).finish(),
      { endStream: false },
    );
    await expect.poll(() => face.registry.status("r").pins).toBe(1);
    const forced = await client.call("Unregister", { name: "r", force: true });
    expect(forced.response).toEqual({ closed: true, pins: "0" });
    expect(await call.status).toMatchObject({
      code: "FAILED_PRECONDITION",
      text: "shared memory region 'r' was unregistered by force; nothing was written",
    });
    expect(face.faults).toEqual([]);
  });

  test("writes all bytes in order, however they are cut", async () => {
    const { bytes, client, face } = await start(3 * 1024 * 1024 + 5);
    const sent = randomBytes(bytes.length);
    expect(await upload(client, [{ window: { name: "r" } }, ...dataOf(sent)])).toMatchObject({
      code: "OK",
      written: String(sent.length),
    });
    expect(sent.equals(bytes)).toBe(true);
    const [one, empty] = [{ data: Buffer.of(1) }, { data: Buffer.alloc(0) }];
    const small = [{ window: { name: "r", offset: "7", byte_size: "3" } }, empty, one, empty, one, one];
    expect(await upload(client, small)).toMatchObject({ code: "OK", written: "3" });
    expect(bytes.subarray(7, 10)).toEqual(Uint8Array.of(1, 1, 1));
    expect(Buffer.from(bytes.subarray(10)).equals(sent.subarray(10))).toBe(true);
    expect(await upload(client, [{ window: { name: "r" } }])).toMatchObject({ code: "OK", written: "0" });
    expect(face.registry.status("r").pins).toBe(0);
  });

  const window = { window: { name: "r" } };
  const data = (byteSize: number) => ({ data: Buffer.alloc(byteSize, 1) });

  test.each<[string, object[], string, RegExp]>([
    ["no message", [], "INVALID_ARGUMENT", /^the first message must be a window/],
    ["data first", [data(1)], "INVALID_ARGUMENT", /^the first message must be a window/],
    ["an empty message first", [{}], "INVALID_ARGUMENT", /^the first message must be a window/],
    [
      "a second window",
      [window, data(1), window],
      "INVALID_ARGUMENT",
      /^every message after the first must have data; nothing was written$/,
    ],
    ["an empty message", [window, {}], "INVALID_ARGUMENT", /^every message after the first must have data/],
    ["no such region", [{ window: { name: "none" } }], "NOT_FOUND", /'none'$/],
    ["no name", [{ window: {} }], "INVALID_ARGUMENT", /is empty$/],
    [
      "a window beyond",
      [{ window: { name: "r", offset: "4097" } }],
      "OUT_OF_RANGE",
      /^0 bytes at offset 4097/,
    ],
    [
      "more than the region",
      [{ window: { name: "r", offset: "4090" } }, data(7)],
      "OUT_OF_RANGE",
      /^the data is longer than the 6 bytes to write; nothing was written$/,
    ],
    [
      "more than announced",
      [{ window: { name: "r", byte_size: "6" } }, data(3), data(4)],
      "OUT_OF_RANGE",
      /^the data is longer than the 6 bytes to write; nothing was written$/,
    ],
    [
      "fewer than announced",
      [{ window: { name: "r", byte_size: "6" } }, data(3), data(2)],
      "INVALID_ARGUMENT",
      /^byte_size is 6, the data ended after 5 bytes, which were written$/,
    ],
  ])("refuses %s", async (_what, messages, code, text) => {
    const { client, face } = await start(4096);
    expect(await upload(client, messages)).toMatchObject({ code, text: expect.stringMatching(text) });
    expect(face.registry.status("r").pins).toBe(0);
    expect(face.faults).toEqual([]);
  });

  test("tells how many bytes were written before it failed", async () => {
    const { client, bytes } = await start(2 * 1024 * 1024);
    const sent = randomBytes(2 * 1024 * 1024 + 1);
    const answer = await upload(client, [window, ...dataOf(sent)]);
    expect(answer).toMatchObject({
      code: "OUT_OF_RANGE",
      text: "the data is longer than the 2097152 bytes to write; the first 1048576 bytes were written",
    });
    expect(sent.subarray(0, 1048576).equals(bytes.subarray(0, 1048576))).toBe(true);
  });

  test("refuses bytes that are no message in the middle of a stream", async () => {
    const { address, face } = await start(4096);
    const session = connectHttp2(`http://${address}`);
    onTestFinished(() => session.destroy());
    const first = WriteContentsRequest.encode({
      part: { $case: "window", value: { name: "r", offset: 0n } },
    }).finish();
    const path = "/cudashm.v1.Registry/WriteContents";
    for (const bytes of [
      Buffer.of(0x0a, 5),
      Buffer.of(0),
      // A window that ends at a tag 0, after which the generated decoder would read on as if outside of it.
      Buffer.of(0x0a, 4, 0, 0x12, 1, 7),
    ]) {
      const call = callRaw(session, path, first, { endStream: false });
      call.send(bytes);
      expect(await call.status).toEqual({
        code: "INVALID_ARGUMENT",
        text: "the request cannot be decoded: the bytes are no such message; nothing was written",
      });
    }
    expect(face.faults).toEqual([]);
    expect(face.registry.status("r").pins).toBe(0);
  });

  test("takes no more from the peer than it has written, but for what is read ahead", async () => {
    const { client, face } = await start(16 * 1024 * 1024);
    const [copying, copied] = [createDeferred(), createDeferred()];
    face.driver.beforeCopy = () => {
      copying.resolve();
      return copied.promise;
    };
    const { stream, answer } = client.write();
    stream.write(window);
    let taken = 0;
    const message = { data: Buffer.alloc(messageBytes) };
    const messages = Math.ceil((16 * 1024 * 1024) / messageBytes) - 1;
    for (let i = 0; i < messages; i++) stream.write(message, () => taken++);
    stream.end();
    await copying.promise;
    let before = -1;
    while (before !== taken) {
      before = taken;
      for (let calls = 0; calls < 20; calls++) await client.call("GetServer");
    }
    // A piece of 1 MiB that is being written, 16 messages that grpc-js reads ahead, and what is on the way.
    expect(taken * messageBytes).toBeLessThan(4 * 1024 * 1024);
    copied.resolve();
    expect(await answer).toMatchObject({ code: "OK", written: String(messages * messageBytes) });
  });

  test("of a client who left lets go once the copy under way has ended", async () => {
    const { client, face } = await start(4096);
    const [copying, copied] = [createDeferred(), createDeferred()];
    face.driver.beforeCopy = () => {
      copying.resolve();
      return copied.promise;
    };
    const { stream, answer } = client.write();
    stream.write({ window: { name: "r", byte_size: "4096" } });
    stream.write({ data: Buffer.alloc(4096) });
    await copying.promise;
    stream.cancel();
    expect(await answer).toMatchObject({ code: "CANCELLED" });
    await client.call("List");
    expect(face.registry.status("r").pins).toBe(1);
    copied.resolve();
    await expect.poll(() => face.registry.status("r").pins).toBe(0);
    expect(face.faults).toEqual([]);
  });

  test("of a client who says no more ends when the service stops", async () => {
    const { client, face, server } = await start(4096);
    const { stream, answer } = client.write();
    stream.write(window);
    await expect.poll(() => face.registry.status("r").pins).toBe(1);
    face.shutdown.abort();
    expect(await answer).toMatchObject({
      code: "UNAVAILABLE",
      text: "Server exiting; nothing was written",
    });
    expect(face.registry.status("r").pins).toBe(0);
    await server.close(new AbortController().signal);
  });

  test("of a client who says nothing at all ends when the service stops", async () => {
    const { face, server, address } = await start(4096);
    const session = connectHttp2(`http://${address}`);
    onTestFinished(() => session.destroy());
    const stream = session.request({
      ":method": "POST",
      ":path": "/cudashm.v1.Registry/WriteContents",
      "content-type": "application/grpc",
    });
    stream.on("error", () => {});
    const closed = once(stream, "close");
    await once(session, "connect");
    await new Promise<void>((resolve) => session.ping(() => resolve()));
    face.shutdown.abort();
    await Promise.all([closed, server.close(new AbortController().signal)]);
  });
});

test("Checksum tells what the bytes are without their transfer", async () => {
  const { client, bytes } = await start(100_000);
  expect((await client.call("Checksum", { name: "r" })).response).toEqual({
    crc32c: crc32c(bytes),
    byte_size: "100000",
  });
  bytes.set(Buffer.from("123456789"), 50);
  const { response } = await client.call("Checksum", { name: "r", offset: "50", byte_size: "9" });
  expect(response).toEqual({ crc32c: 0xe3069283, byte_size: "9" });
});

test("nothing of any contents is told unless the service serves them", async () => {
  const { client, face } = await start(4096, false);
  const refusal = {
    code: "PERMISSION_DENIED",
    text: "the contents of regions are not served; start the service with --allow-contents to serve them",
  };
  for (const name of ["r", "none", ""]) {
    expect(await client.follow("ReadContents", { name }).end).toMatchObject(refusal);
    expect(await client.call("Checksum", { name })).toMatchObject(refusal);
    expect(await upload(client, [{ window: { name } }])).toMatchObject(refusal);
  }
  expect(await upload(client, [])).toMatchObject(refusal);
  expect(face.faults).toEqual([]);
});
