import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { createCudaSharedMemoryClient } from "../../src/client/index.js";
import { createDeferred } from "../helpers/deferred.js";
import { standIn } from "./stand-in.js";

const region = { rawHandle: new Uint8Array(64).fill(7), deviceId: 0, byteSize: 64 };
const handle = Buffer.from(region.rawHandle).toString("base64");

describe("an answer that is not the service's", () => {
  test.each([
    [400, "INVALID_ARGUMENT"],
    [401, "UNAUTHENTICATED"],
    [403, "PERMISSION_DENIED"],
    [404, "NOT_FOUND"],
    [405, "UNIMPLEMENTED"],
    [418, "UNKNOWN"],
    [429, "RESOURCE_EXHAUSTED"],
    [500, "INTERNAL"],
    [501, "UNIMPLEMENTED"],
    [502, "UNAVAILABLE"],
    [503, "UNAVAILABLE"],
    [504, "DEADLINE_EXCEEDED"],
  ])("a page with status %d is %s, and none of its text is repeated", async (status, code) => {
    await using proxy = await standIn((_request, answer) => {
      answer.writeHead(status, { "content-type": "text/html" }).end(`<pre>you sent ${handle}</pre>`);
    });
    await expect(proxy.client.register("r", region)).rejects.toMatchObject({
      code,
      httpStatus: status,
      requestId: null,
      message: `HTTP status ${status}, not in the service's words (content type text/html); see whether baseUrl is right and what stands in between`,
    });
  });

  test("Triton's own errors, which name no code, keep their text", async () => {
    await using triton = await standIn((_request, answer) => {
      answer.writeHead(400, { "x-error-code": "of another kind" }).end('{"error":"why"}');
    });
    const refusal = { code: "INVALID_ARGUMENT", httpStatus: 400, message: "why" };
    await expect(triton.client.statuses()).rejects.toMatchObject(refusal);
    await expect(triton.client.readContents("r")).rejects.toMatchObject(refusal);
  });

  test("a page with status 200 is no success of any call", async () => {
    await using proxy = await standIn((_request, answer) => answer.end("<html>log in</html>"));
    const malformed = {
      code: "UNKNOWN",
      httpStatus: 200,
      message: expect.stringMatching(/^malformed answer/),
    };
    await expect(proxy.client.register("r", region)).rejects.toMatchObject(malformed);
    await expect(proxy.client.unregister("r")).rejects.toMatchObject(malformed);
    await expect(proxy.client.unregisterAll()).rejects.toMatchObject(malformed);
    await expect(proxy.client.status("r")).rejects.toMatchObject(malformed);
    await expect(proxy.client.statuses()).rejects.toMatchObject(malformed);
    await expect(proxy.client.metadata()).rejects.toMatchObject(malformed);
    await expect(proxy.client.server()).rejects.toMatchObject(malformed);
    await expect(proxy.client.devices()).rejects.toMatchObject(malformed);
    await expect(proxy.client.region("r")).rejects.toMatchObject(malformed);
    await expect(proxy.client.regionPage()).rejects.toMatchObject(malformed);
    await expect(proxy.client.registerRegion("r", region)).rejects.toMatchObject(malformed);
    await expect(proxy.client.renew("r")).rejects.toMatchObject(malformed);
    await expect(proxy.client.unregisterRegion("r")).rejects.toMatchObject(malformed);
    await expect(proxy.client.checksum("r")).rejects.toMatchObject(malformed);
    await expect(proxy.client.writeContents("r", new Uint8Array(1))).rejects.toMatchObject(malformed);
  });

  test.each(["[]", '[{"name":"a","device_id":0,"byte_size":1},{"name":"b","device_id":0,"byte_size":1}]'])(
    "the status of one region is not %s",
    async (json) => {
      await using other = await standIn((_request, answer) => answer.end(json));
      await expect(other.client.status("a")).rejects.toMatchObject({ code: "UNKNOWN", httpStatus: 200 });
    },
  );

  test.each([
    '{"closed":1,"pins":0}',
    '{"closed":true,"pins":-1}',
    '{"closed":true,"pins":9007199254740993}',
    '{"closed":true}',
    "[]",
    "null",
  ])("an unregister is not answered %s", async (json) => {
    await using other = await standIn((_request, answer) => answer.end(json));
    await expect(other.client.unregisterRegion("a")).rejects.toMatchObject({ code: "UNKNOWN" });
  });

  test.each(['"E3069283"', '"e306928"', "3808858755", "null"])("a checksum is not %s", async (crc32c) => {
    await using other = await standIn((_request, answer) => answer.end(`{"crc32c":${crc32c},"byte_size":9}`));
    await expect(other.client.checksum("a")).rejects.toMatchObject({ code: "UNKNOWN" });
  });

  test("a 204 is no success: the service never gives one", async () => {
    await using other = await standIn((_request, answer) => answer.writeHead(204).end());
    await expect(other.client.unregisterAll()).rejects.toMatchObject({ code: "UNKNOWN", httpStatus: 204 });
  });

  test("a redirect is not followed, so that no handle goes elsewhere", async () => {
    let reached = false;
    await using elsewhere = await standIn((_request, answer) => {
      reached = true;
      answer.end();
    });
    await using proxy = await standIn((request, answer) => {
      answer.writeHead(307, { location: elsewhere.baseUrl + request.url }).end();
    });
    await expect(proxy.client.register("r", region)).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(reached).toBe(false);
  });

  test.each([
    [200, true],
    [400, false],
    [503, false],
  ])("health answered %d is %s", async (status, healthy) => {
    await using other = await standIn((_request, answer) => answer.writeHead(status).end());
    expect(await other.client.isLive()).toBe(healthy);
    expect(await other.client.isReady()).toBe(healthy);
  });
});

describe("no answer", () => {
  test("where nobody listens every call is UNAVAILABLE and says where it went", async () => {
    const gone = await standIn(() => {});
    await gone[Symbol.asyncDispose]();
    const unavailable = {
      code: "UNAVAILABLE",
      httpStatus: null,
      requestId: null,
      message: expect.stringMatching(`^no answer from ${gone.baseUrl}: .*ECONNREFUSED`),
      cause: expect.any(TypeError),
    };
    await expect(gone.client.register("r", region)).rejects.toMatchObject(unavailable);
    await expect(gone.client.statuses()).rejects.toMatchObject(unavailable);
    await expect(gone.client.isLive()).rejects.toMatchObject(unavailable);
    await expect(gone.client.readContents("r")).rejects.toMatchObject(unavailable);
  });

  test("an answer that breaks off in the middle is UNAVAILABLE", async () => {
    await using broken = await standIn((_request, answer) => {
      answer.writeHead(200, { "content-length": "100" });
      answer.write("[", () => answer.destroy());
    });
    await expect(broken.client.statuses()).rejects.toMatchObject({ code: "UNAVAILABLE" });
    await expect(broken.client.readContents("r")).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });
});

describe("giving up", () => {
  test("an aborted signal is CANCELLED with its reason, and sends nothing", async () => {
    let requests = 0;
    await using server = await standIn(() => requests++);
    const signal = AbortSignal.abort("no longer wanted");
    const cancelled = { code: "CANCELLED", httpStatus: null, cause: "no longer wanted" };
    await expect(server.client.register("r", region, { signal })).rejects.toMatchObject(cancelled);
    await expect(server.client.statuses({ signal })).rejects.toMatchObject(cancelled);
    await expect(server.client.unregisterAll({ signal })).rejects.toMatchObject(cancelled);
    await expect(server.client.readContents("r", {}, { signal })).rejects.toMatchObject(cancelled);
    expect(requests).toBe(0);
  });

  test("aborting a call under way breaks its request off, and leaves the client usable", async () => {
    const arrived = createDeferred();
    const left = createDeferred();
    await using server = await standIn((request, answer) => {
      if (request.method === "GET") return void answer.end("[]");
      answer.once("close", () => left.resolve());
      arrived.resolve();
    });
    const abort = new AbortController();
    const register = server.client.register("r", region, { signal: abort.signal });
    const cancelled = expect(register).rejects.toMatchObject({ code: "CANCELLED" });
    await arrived.promise;
    abort.abort();
    await cancelled;
    await left.promise;
    expect(await server.client.statuses()).toEqual([]);
  });

  test("aborting while the answer comes in is CANCELLED too", async () => {
    const abort = new AbortController();
    await using server = await standIn((_request, answer) => {
      answer.writeHead(200, { "content-length": "100" });
      answer.write("[");
    });
    const client = createCudaSharedMemoryClient({
      baseUrl: server.baseUrl,
      fetch: async (...request) => {
        const answer = await fetch(...request);
        setImmediate(() => abort.abort());
        return answer;
      },
    });
    await expect(client.statuses({ signal: abort.signal })).rejects.toMatchObject({ code: "CANCELLED" });
  });

  test("a time that runs out is DEADLINE_EXCEEDED", async () => {
    await using server = await standIn(() => {});
    await expect(server.client.statuses({ signal: AbortSignal.timeout(1) })).rejects.toMatchObject({
      code: "DEADLINE_EXCEEDED",
      httpStatus: null,
    });
  });

  test("the client's own signal gives up every call, now and later", async () => {
    const arrived = createDeferred();
    await using server = await standIn(() => arrived.resolve());
    const abort = new AbortController();
    const client = createCudaSharedMemoryClient({ baseUrl: server.baseUrl, signal: abort.signal });
    const other = new AbortController().signal;
    const cancelled = expect(client.statuses({ signal: other })).rejects.toMatchObject({ code: "CANCELLED" });
    await arrived.promise;
    abort.abort();
    await cancelled;
    await expect(client.statuses({ signal: other })).rejects.toMatchObject({ code: "CANCELLED" });
  });

  test("calls that ended leave nothing behind on signals that live on", async () => {
    await using server = await standIn((request, answer) => {
      if (request.url === "/v2/cudasharedmemory/status") answer.end("[]");
      else answer.writeHead(500).end();
    });
    const signals = [new AbortController().signal, new AbortController().signal] as const;
    const client = createCudaSharedMemoryClient({ baseUrl: server.baseUrl, signal: signals[0] });
    await client.statuses({ signal: signals[1] });
    await expect(client.unregisterAll({ signal: signals[1] })).rejects.toThrow();
    expect(signals.map((signal) => getEventListeners(signal, "abort"))).toEqual([[], []]);
  });
});

test.each([
  ["127.0.0.1:8000", "no URL"],
  ["/v2", "no URL"],
  ["ftp://127.0.0.1", "not usable"],
  ["http://user:secret@127.0.0.1", "not usable"],
  ["http://127.0.0.1?token=secret", "not usable"],
  ["http://127.0.0.1#secret", "not usable"],
])("%s is no base URL, and the refusal does not repeat it", (baseUrl, problem) => {
  expect(() => createCudaSharedMemoryClient({ baseUrl })).toThrow(
    expect.objectContaining({
      code: "INVALID_ARGUMENT",
      message: `baseUrl is ${problem}; expected an http or https URL with no user, query or fragment, such as http://127.0.0.1:8000`,
    }),
  );
});
