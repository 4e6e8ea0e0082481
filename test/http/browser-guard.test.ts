import { describe, expect, test } from "vitest";
import { Face, registerBody } from "./face.js";

const status = "/v2/cudasharedmemory/status";
const unregisterAll = "/v2/cudasharedmemory/unregister";
const page = "https://dashboard.example";

describe("without a listed origin", () => {
  test.each([
    ["of another site", { origin: "http://evil.example" }],
    ["of this machine on another port", { origin: "http://localhost:3000" }],
    [
      "whose name was made to mean this machine, so that Origin and Host agree",
      {
        origin: "http://rebound.example:8000",
        host: "rebound.example:8000",
      },
    ],
    ["of a sandbox or a file", { origin: "null" }],
    ["with an empty origin", { origin: "" }],
  ])("a page %s changes nothing", async (_, headers) => {
    await using face = await Face.start();
    const allocation = await face.registerNew("r");
    const register = "/v2/cudasharedmemory/region/evil/register";
    for (const [method, path, body] of [
      ["POST", unregisterAll, ""],
      ["POST", "/v2/cudasharedmemory/region/r/unregister", ""],
      ["POST", register, registerBody(allocation, 64)],
      ["PUT", "/v1/regions/r/contents", "x"],
      ["GET", status, undefined],
      ["OPTIONS", unregisterAll, undefined],
      ["GET", "/none", undefined],
    ] as const) {
      const answer = await face.send(method, path, { headers, ...(body !== undefined && { body }) });
      expect([method, path, answer.status]).toEqual([method, path, 403]);
      expect(answer.headers["access-control-allow-origin"]).toBeUndefined();
    }
    expect(face.names()).toEqual(["r"]);
    expect(allocation.bytes.every((byte) => byte === 0)).toBe(true);
    expect(face.faults).toEqual([]);
  });

  test("the text says which origin and what to do, and a long one is cut", async () => {
    await using face = await Face.start();
    const { text, headers } = await face.send("POST", unregisterAll, { headers: { origin: page } });
    expect(JSON.parse(text)).toEqual({
      error: `pages of the origin '${page}' may not use this service; start it with --http-allowed-origin and that origin to let them`,
    });
    expect(headers["x-error-code"]).toBe("PERMISSION_DENIED");
    const long = await face.send("POST", unregisterAll, { headers: { origin: "x".repeat(5000) } });
    expect(long.text.length).toBeLessThan(500);
  });

  test("two origins in one request are none that is listed", async () => {
    await using face = await Face.start({ allowedOrigins: [page] });
    await face.registerNew("r");
    const answer = await face.raw(
      `POST ${unregisterAll} HTTP/1.1\r\nOrigin: ${page}\r\nOrigin: http://evil.example\r\n` +
        "Content-Length: 0\r\nConnection: close\r\n\r\n",
    );
    expect(answer).toMatch(/^HTTP\/1\.1 403 /);
    expect(face.names()).toEqual(["r"]);
  });
});

describe("a page of a listed origin", () => {
  const headers = { origin: page };

  test("may call, and may read every answer, errors included", async () => {
    await using face = await Face.start({ allowedOrigins: ["http://other.example", page] });
    await face.registerNew("r");
    for (const [method, path, expected] of [
      ["GET", status, 200],
      ["GET", "/v1/regions/r/contents", 200],
      ["GET", "/v2/cudasharedmemory/region/none/status", 404],
      ["GET", "/none", 404],
      ["PUT", status, 405],
      ["POST", unregisterAll, 200],
    ] as const) {
      const answer = await face.send(method, path, { headers });
      expect([path, answer.status]).toEqual([path, expected]);
      expect(answer.headers).toMatchObject({
        "access-control-allow-origin": page,
        "access-control-expose-headers": "x-request-id, x-error-code",
        vary: "Origin",
      });
    }
    expect(face.names()).toEqual([]);
  });

  test("is told in advance what it may send, without being asked for more than its origin", async () => {
    await using face = await Face.start({ allowedOrigins: [page] });
    const answer = await face.send("OPTIONS", "/v1/regions/r/contents", {
      headers: {
        ...headers,
        "access-control-request-method": "PUT",
        "access-control-request-headers": "authorization,admin-key",
      },
    });
    expect([answer.status, answer.text]).toEqual([200, ""]);
    expect(answer.headers).toMatchObject({
      "access-control-allow-origin": page,
      "access-control-allow-methods": "GET, HEAD, PUT",
      "access-control-allow-headers": "authorization,admin-key",
      "access-control-max-age": "600",
      vary: "Origin",
    });
  });

  test("gets OPTIONS answered as ever where it asks for no leave", async () => {
    await using face = await Face.start({ allowedOrigins: [page] });
    expect((await face.send("OPTIONS", status, { headers })).status).toBe(405);
    const nowhere = { ...headers, "access-control-request-method": "POST" };
    expect((await face.send("OPTIONS", "/none", { headers: nowhere })).status).toBe(404);
  });

  test("of almost the same origin is refused", async () => {
    await using face = await Face.start({ allowedOrigins: [page] });
    for (const origin of [`${page}:8443`, `${page}/`, `http${page.slice(5)}`, `${page}.evil.example`]) {
      expect((await face.send("GET", status, { headers: { origin } })).status).toBe(403);
    }
  });
});

test("a client that sends no origin notices nothing", async () => {
  await using face = await Face.start({ allowedOrigins: [page] });
  const answer = await face.get(status);
  expect(answer.status).toBe(200);
  expect(answer.headers).not.toHaveProperty("vary");
  expect(answer.headers).not.toHaveProperty("access-control-allow-origin");
});

describe("where Host is looked at", () => {
  const served = async (face: Face, line: string) =>
    (await face.raw(`GET ${status} HTTP/1.1\r\n${line}Connection: close\r\n\r\n`)).slice(9, 12);

  test.each([
    "localhost",
    "LOCALHOST:8000",
    "127.0.0.1:8000",
    "10.1.2.3",
    "[::1]",
    "[::1]:8000",
    "gpu-7.lan",
    "GPU-7.lan:1234",
    "exact:8000",
    "",
  ])("%j is served", async (host) => {
    await using face = await Face.start({ allowedHosts: ["gpu-7.lan", "Exact:8000"] });
    expect(await served(face, `Host: ${host}\r\n`)).toBe("200");
  });

  test.each([
    "rebound.example:8000",
    "localhost.evil.example",
    "evil.example:localhost",
    "127.0.0.1.evil.example",
    "[evil.example]",
    "::1",
    "exact:8001",
    "exact",
    "localhost@evil.example",
    "a/b",
  ])("%j is not served", async (host) => {
    await using face = await Face.start({ allowedHosts: ["gpu-7.lan", "exact:8000"] });
    expect(await served(face, `Host: ${host}\r\n`)).toBe("403");
    // Not because of what was remembered of another request either.
    expect(await served(face, "Host: localhost\r\n")).toBe("200");
    expect(await served(face, `Host: ${host}\r\n`)).toBe("403");
  });

  test("a request without Host is served", async () => {
    await using face = await Face.start({ allowedHosts: [] });
    expect(await served(face, "")).toBe("200");
  });

  test("the text says which name and what to do", async () => {
    await using face = await Face.start({ allowedHosts: [] });
    const { text } = await face.send("GET", status, { headers: { host: "gpu-7" } });
    expect(JSON.parse(text)).toEqual({
      error:
        "this service is not called 'gpu-7'; use localhost or an IP address, or start it with --http-allowed-host and that name",
    });
  });

  test("where it is not looked at, any will do", async () => {
    await using face = await Face.start();
    expect(await served(face, "Host: a/b\r\n")).toBe("200");
  });
});
