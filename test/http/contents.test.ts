import { describe, expect, it } from "vitest";
import { exitingText, RegistryError } from "../../src/core/errors.js";
import { createDeferred } from "../helpers/deferred.js";
import { driverError } from "../helpers/fake-driver.js";
import { Face } from "./face.js";

const errorIn = (answer: { text: string }): unknown => JSON.parse(answer.text).error;
const path = "/v1/regions/r/contents";
const put = (face: Face, query: string, body: Uint8Array) => face.send("PUT", path + query, { body });
const pattern = (length: number, seed = 1) =>
  Uint8Array.from({ length }, (_, i) => (i * 31 + seed * 7 + (i >> 8)) & 0xff);

describe("reading the contents of a region", () => {
  it("gives the exporter's bytes, whole and in part", async () => {
    await using face = await Face.start();
    const { bytes } = await face.registerNew("r", 5000);
    bytes.set(pattern(5000));
    const whole = await face.get(path);
    expect(whole.status).toBe(200);
    expect(whole.headers).toMatchObject({
      "content-type": "application/octet-stream",
      "content-length": "5000",
    });
    expect(whole.headers["x-request-id"]).toBeTruthy();
    expect(whole.bytes.equals(bytes)).toBe(true);
    for (const [query, start, end] of [
      ["?offset=10&byte_size=20", 10, 30],
      ["?byte_size=3", 0, 3],
      ["?offset=4999", 4999, 5000],
      ["?offset=5000", 5000, 5000],
      ["?offset=0&byte_size=0", 0, 0],
      ["?byte_size=5000&offset=0&other=1", 0, 5000],
    ] as const) {
      const part = await face.get(path + query);
      expect(part.status, query).toBe(200);
      expect(part.bytes.equals(bytes.subarray(start, end)), query).toBe(true);
    }
    expect(face.registry.status("r").pins).toBe(0);
  });

  it("gives bytes of several pieces in their order", async () => {
    await using face = await Face.start();
    const size = 3 * 1024 * 1024 + 17;
    const { bytes } = await face.registerNew("r", size);
    bytes.set(pattern(size));
    const answer = await face.get(`${path}?offset=5`);
    expect(answer.bytes.byteLength).toBe(size - 5);
    expect(answer.bytes.equals(bytes.subarray(5))).toBe(true);
  });

  it("sees the region alone, not the rest of its allocation", async () => {
    await using face = await Face.start();
    const allocation = face.driver.allocate(4096);
    const b64 = Buffer.from(allocation.handle.exposeBytes()).toString("base64");
    await face.register("r", `{"raw_handle":{"b64":"${b64}"},"device_id":0,"byte_size":64}`);
    expect((await face.get(path)).bytes.byteLength).toBe(64);
    expect((await face.get(`${path}?offset=1&byte_size=64`)).status).toBe(400);
    expect((await put(face, "?offset=64", new Uint8Array(1))).status).toBe(400);
  });

  it("answers HEAD with the length, and copies nothing", async () => {
    await using face = await Face.start();
    await face.registerNew("r", 100);
    face.driver.beforeCopy = () => {
      throw new Error("copied");
    };
    const answer = await face.send("HEAD", `${path}?offset=40`);
    expect(answer).toMatchObject({ status: 200, text: "" });
    expect(answer.headers["content-length"]).toBe("60");
    expect(face.registry.status("r").pins).toBe(0);
  });

  it.each([
    "?offset=5001",
    "?offset=0&byte_size=5001",
    "?offset=4999&byte_size=2",
    "?offset=18446744073709551615",
    "?offset=18446744073709551615&byte_size=18446744073709551615",
    "?offset=-1",
    "?offset=",
    "?offset=1.0",
    "?offset=1e2",
    "?byte_size=0x10",
    "?byte_size=18446744073709551616",
    "?offset=1&offset=1",
  ])("refuses %s", async (query) => {
    await using face = await Face.start();
    await face.registerNew("r", 5000);
    const answer = await face.get(path + query);
    expect(answer.status).toBe(400);
    expect(errorIn(answer)).toMatch(
      /not within the 5000 bytes|must be given at most once, as a whole number/,
    );
    expect(face.registry.status("r").pins).toBe(0);
    expect(face.faults).toEqual([]);
  });

  it("knows no region of another name", async () => {
    await using face = await Face.start();
    for (const answer of [
      await face.get(path),
      await face.get(`${path}?byte_size=1`),
      await put(face, "", new Uint8Array(1)),
    ]) {
      expect(answer.status).toBe(404);
      expect(errorIn(answer)).toBe("Unable to find cuda shared memory region: 'r'");
    }
  });

  it("is refused unless it is switched on", async () => {
    await using face = await Face.start({ allowContents: false });
    const { bytes } = await face.registerNew("r", 4);
    for (const answer of [await face.get(path), await put(face, "", Uint8Array.of(1, 2, 3, 4))]) {
      expect(answer.status).toBe(403);
      expect(errorIn(answer)).toContain("--allow-contents");
    }
    expect(bytes).toEqual(new Uint8Array(4));
  });

  it("answers 500 where the driver refuses the first copy", async () => {
    await using face = await Face.start();
    await face.registerNew("r", 100);
    face.driver.beforeCopy = () => {
      throw driverError(700, "CUDA_ERROR_ILLEGAL_ADDRESS", "cuMemcpyDtoH");
    };
    expect((await face.get(path)).status).toBe(500);
    expect(face.faults).toHaveLength(1);
    expect(face.registry.status("r").pins).toBe(0);
  });

  it("breaks the connection where the driver refuses a later copy, so that nobody takes the rest for whole", async () => {
    await using face = await Face.start();
    await face.registerNew("r", 3 * 1024 * 1024);
    let copies = 0;
    face.driver.beforeCopy = () => {
      if (++copies === 2) throw driverError(700, "CUDA_ERROR_ILLEGAL_ADDRESS", "cuMemcpyDtoH");
    };
    await expect(face.get(path)).rejects.toMatchObject({ code: "ECONNRESET" });
    expect(face.faults).toHaveLength(1);
    expect(face.registry.status("r").pins).toBe(0);
  });

  it("holds the driver back for a slow reader, and lets go when the reader leaves", async () => {
    await using face = await Face.start();
    await face.registerNew("r", 256 * 1024 * 1024);
    let copies = 0;
    face.driver.beforeCopy = () => {
      copies++;
    };
    const connection = await face.open();
    connection.send(`GET ${path} HTTP/1.1\r\n\r\n`);
    await connection.until(/\r\n\r\n/);
    connection.socket.pause();
    // Each answer on another connection is a turn in which the stream could have run away.
    for (let i = 0; i < 50; i++) await face.get("/v2/health/live");
    expect(copies).toBeLessThan(64);
    expect(face.registry.status("r").pins).toBe(1);
    expect((await face.post("/v2/cudasharedmemory/region/r/unregister")).status).toBe(200);
    expect(face.names()).toEqual(["r"]);
    connection.socket.destroy();
    while (face.names().length > 0) await face.get("/v2/health/live");
    expect(face.driver.openMappings).toBe(0);
    expect(face.faults).toEqual([]);
  });

  it("ends when the service stops", async () => {
    await using face = await Face.start();
    await face.registerNew("r", 64 * 1024 * 1024);
    const connection = await face.open();
    connection.send(`GET ${path} HTTP/1.1\r\n\r\n`);
    await connection.until(/\r\n\r\n/);
    connection.socket.pause();
    await face.get("/v2");
    face.shutdown.abort(new RegistryError("UNAVAILABLE", exitingText));
    await face.server.close(new AbortController().signal);
    expect(face.registry.status("r").pins).toBe(0);
    connection.socket.destroy();
  });
});

describe("writing the contents of a region", () => {
  it("puts the bytes where the exporter sees them, and nowhere else", async () => {
    await using face = await Face.start();
    const { bytes } = await face.registerNew("r", 100);
    const answer = await put(face, "?offset=10&byte_size=3", Uint8Array.of(1, 2, 3));
    expect(answer).toMatchObject({ status: 200, text: "" });
    const expected = new Uint8Array(100);
    expected.set([1, 2, 3], 10);
    expect(bytes).toEqual(expected);
    expect((await put(face, "", Uint8Array.of(9))).status).toBe(200);
    expect(bytes[0]).toBe(9);
    expect(bytes[1]).toBe(0);
    expect(face.registry.status("r").pins).toBe(0);
  });

  it("writes bodies of several pieces, whole", async () => {
    await using face = await Face.start();
    const size = 2 * 1024 * 1024 + 33;
    const { bytes } = await face.registerNew("r", size);
    expect((await put(face, "", pattern(size, 3))).status).toBe(200);
    expect(Buffer.compare(bytes, pattern(size, 3))).toBe(0);
  });

  it("takes a body without a declared length", async () => {
    await using face = await Face.start();
    const { bytes } = await face.registerNew("r", 8);
    const chunked = (query: string, chunks: string) =>
      face.raw(
        `PUT ${path}${query} HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n${chunks}0\r\n\r\n`,
      );
    expect(await chunked("?offset=2", "1\r\na\r\n2\r\nbc\r\n")).toMatch(/^HTTP\/1\.1 200 /);
    expect(Buffer.from(bytes).toString("latin1")).toBe("\0\0abc\0\0\0");
    expect(await chunked("?byte_size=4", "2\r\nxy\r\n")).toMatch(
      /^HTTP\/1\.1 400 .*byte_size is 4, the body ended after 2 bytes, which were written/s,
    );
    expect(await chunked("?offset=6", "3\r\nlong\r\n".replace("long", "lon"))).toMatch(
      /^HTTP\/1\.1 400 .*longer than the 2 bytes to write; nothing was written/s,
    );
    expect(Buffer.from(bytes).toString("latin1")).toBe("xyabc\0\0\0");
    expect(face.faults).toEqual([]);
  });

  it.each([
    ["?offset=98", 3, /not within the 100 bytes/],
    ["?offset=101", 0, /not within the 100 bytes/],
    ["?byte_size=2", 3, /^byte_size is 2, the body has 3 bytes; nothing was written$/],
    ["?byte_size=4", 3, /^byte_size is 4, the body has 3 bytes; nothing was written$/],
    ["?offset=x", 3, /^'offset' must be given at most once/],
    ["", 101, /not within the 100 bytes/],
  ])(
    "refuses %s with a body of %i bytes before it writes any, and the connection goes on",
    async (query, length, text) => {
      await using face = await Face.start();
      const { bytes } = await face.registerNew("r", 100);
      const connection = await face.open();
      connection.send(
        `PUT ${path}${query} HTTP/1.1\r\nContent-Length: ${length}\r\n\r\n${"x".repeat(length)}`,
      );
      connection.send("GET /v2/health/live HTTP/1.1\r\nConnection: close\r\n\r\n");
      const [first = "", second = ""] = (await connection.untilClosed()).split(/(?<=})(?=HTTP)/);
      expect(first).toMatch(/^HTTP\/1\.1 400 /);
      expect(errorIn({ text: first.split("\r\n\r\n")[1] ?? "" })).toMatch(text);
      expect(second).toMatch(/^HTTP\/1\.1 200 /);
      expect(bytes).toEqual(new Uint8Array(100));
      expect(face.driver.openMappings).toBe(1);
    },
  );

  it("says how far a write came that broke in the middle", async () => {
    await using face = await Face.start();
    await face.registerNew("r", 3 * 1024 * 1024);
    let copies = 0;
    face.driver.beforeCopy = () => {
      if (++copies === 2) throw driverError(700, "CUDA_ERROR_ILLEGAL_ADDRESS", "cuMemcpyHtoD");
    };
    const answer = await put(face, "", new Uint8Array(3 * 1024 * 1024));
    expect(answer.status).toBe(500);
    expect(errorIn(answer)).toMatch(/; the first 1048576 bytes were written$/);
    expect(face.faults).toHaveLength(1);
    expect(face.registry.status("r").pins).toBe(0);
  });

  it("lets go of the region when the writer leaves in the middle", async () => {
    await using face = await Face.start();
    await face.registerNew("r", 4 * 1024 * 1024);
    const copied = createDeferred();
    face.driver.beforeCopy = () => copied.resolve();
    const connection = await face.open();
    connection.send(`PUT ${path} HTTP/1.1\r\nContent-Length: ${4 * 1024 * 1024}\r\n\r\n`);
    connection.send(new Uint8Array(2 * 1024 * 1024));
    await copied.promise;
    expect(face.registry.status("r").pins).toBe(1);
    connection.socket.destroy();
    while (face.registry.status("r").pins > 0) await face.get("/v2/health/live");
    expect(face.faults).toEqual([]);
  });

  it("stops when the service stops", async () => {
    await using face = await Face.start();
    await face.registerNew("r", 4 * 1024 * 1024);
    const copying = createDeferred();
    const copied = createDeferred();
    face.driver.beforeCopy = () => {
      copying.resolve();
      return copied.promise;
    };
    const answer = put(face, "", new Uint8Array(4 * 1024 * 1024));
    await copying.promise;
    face.shutdown.abort(new RegistryError("UNAVAILABLE", exitingText));
    copied.resolve();
    const { status, text } = await answer;
    expect(status).toBe(503);
    expect(JSON.parse(text).error).toBe("Server exiting; the first 1048576 bytes were written");
    expect(face.faults).toEqual([]);
  });
});
