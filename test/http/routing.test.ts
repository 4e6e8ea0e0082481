import { describe, expect, it } from "vitest";
import { Face } from "./face.js";

const errorIn = (answer: { text: string }): unknown => JSON.parse(answer.text).error;

const routes = [
  ["GET", "/v2"],
  ["GET", "/v2/health/live"],
  ["GET", "/v2/health/ready"],
  ["GET", "/v2/cudasharedmemory/status"],
  ["GET", "/v2/cudasharedmemory/region/r/status"],
  ["POST", "/v2/cudasharedmemory/register"],
  ["POST", "/v2/cudasharedmemory/region/r/register"],
  ["POST", "/v2/cudasharedmemory/unregister"],
  ["POST", "/v2/cudasharedmemory/region/r/unregister"],
  ["GET", "/v2/systemsharedmemory/status"],
  ["GET", "/v2/systemsharedmemory/region/r/status"],
  ["POST", "/v2/systemsharedmemory/register"],
  ["POST", "/v2/systemsharedmemory/region/r/register"],
  ["POST", "/v2/systemsharedmemory/unregister"],
  ["POST", "/v2/systemsharedmemory/region/r/unregister"],
] as const;

describe("methods", () => {
  it.each(routes)("serves %s %s and refuses every other method with 405 and Allow", async (method, path) => {
    await using face = await Face.start();
    await face.registerNew("r");
    const allowed = method === "GET" ? ["GET", "HEAD"] : [method];
    for (const tried of ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"]) {
      const answer = await face.send(tried, path);
      if (allowed.includes(tried)) {
        expect(answer.status, tried).not.toBe(405);
        continue;
      }
      expect(answer.status, tried).toBe(405);
      expect(answer.headers).toMatchObject({ "content-type": "application/json", allow: allowed.join(", ") });
      expect(answer.text).toBe(tried === "HEAD" ? "" : '{"error":"Method Not Allowed"}');
    }
  });

  it("answers the contents of a region to GET, HEAD and PUT alone", async () => {
    await using face = await Face.start();
    expect((await face.post("/v1/regions/r/contents")).headers.allow).toBe("GET, HEAD, PUT");
  });

  it("answers HEAD as GET without the body", async () => {
    await using face = await Face.start();
    await face.registerNew("r");
    const path = "/v2/cudasharedmemory/status";
    const get = await face.get(path);
    const head = await face.send("HEAD", path);
    expect(head).toMatchObject({ status: 200, text: "" });
    expect(head.headers["content-length"]).toBe(get.headers["content-length"]);
    expect(head.headers["content-type"]).toBe("application/json");
    expect(await face.send("HEAD", "/v2/cudasharedmemory/region/x/status")).toMatchObject({
      status: 404,
      text: "",
    });
  });

  it("refuses CONNECT in words", async () => {
    await using face = await Face.start();
    expect(await face.raw("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n")).toMatch(
      /^HTTP\/1\.1 405 .*\{"error":"Method Not Allowed"\}$/s,
    );
  });
});

describe("paths", () => {
  it.each([
    "/",
    "",
    "*",
    "/v2/",
    "/V2",
    "/v2/cudasharedmemory",
    "/v2/cudasharedmemory/",
    "/v2/cudasharedmemory/status/",
    "/v2/CudaSharedMemory/status",
    "/v2//cudasharedmemory/status",
    "//v2/cudasharedmemory/status",
    "/v2/cudasharedmemory//status",
    "/v2/cudasharedmemory/region/status",
    "/v2/cudasharedmemory/region//status",
    "/v2/cudasharedmemory/region/a/b/status",
    "/v2/cudasharedmemory/region/r/status/",
    "/v2/cudasharedmemory/region/r/status;x",
    "/v2/cudasharedmemory/region/r/Status",
    "/v2/cudasharedmemory/%73tatus",
    "/v2/%63udasharedmemory/status",
    "/v2/./cudasharedmemory/status",
    "/v2/x/../cudasharedmemory/status",
    "/v2/cudasharedmemory/region/%2e%2e/../status",
    "/v2/cudasharedmemory/status%3Fx",
    "/v2/cudasharedmemory/status#x",
    "/v2/models",
    "/:name",
    "/v1/regions//contents",
    "/v1/regions/r/contents/",
  ])("knows nothing under %j", async (path) => {
    await using face = await Face.start();
    const target = path === "" ? "http://host" : path;
    const answer = await face.raw(`GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 404 .*content-type: application\/json.*\{"error":"Not Found"\}$/is);
  });

  it.each([
    "/v2/cudasharedmemory/region/../unregister",
    "/v2/cudasharedmemory/region/./../unregister",
    "/v2/cudasharedmemory/region/%2e%2e/unregister",
    "/v2/cudasharedmemory/region/%2E./unregister",
    "/v2/cudasharedmemory/region/.%2e/unregister",
    "/v2/cudasharedmemory/region/./unregister",
    "/v2/cudasharedmemory/region/%2e/unregister",
    "/v2/cudasharedmemory/region//unregister",
    "/v2/cudasharedmemory//unregister",
    "/v2/cudasharedmemory/unregister/",
    "/v2/cudasharedmemory/x/../unregister",
    "/v2/cudasharedmemory\\unregister",
    "/v2/cudasharedmemory/region\\..\\unregister",
    "/v2/cudasharedmemory/region/%5c..%5cunregister",
    "/v2/cudasharedmemory/region/%2e%2e%2funregister",
    "/v2/cudasharedmemory/region/../../cudasharedmemory/unregister",
    "http://host/v2/cudasharedmemory/region/../unregister",
    "http://host/v2/cudasharedmemory/region/%2e%2e/unregister",
    "//host/v2/cudasharedmemory/unregister",
    "/v2/cudasharedmemory/region/\t../unregister",
    "?/v2/cudasharedmemory/unregister",
  ])("unregisters nothing for %j", async (target) => {
    await using face = await Face.start();
    await face.registerNew("a");
    await face.registerNew("b");
    const answer = await face.raw(`POST ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 40[04] .*\{"error":".+"\}$/s);
    expect(face.names()).toEqual(["a", "b"]);
    expect(face.driver.closes).toBe(0);
  });

  it("names the reason where a name is one that clients fold away", async () => {
    await using face = await Face.start();
    const answer = await face.post("/v2/cudasharedmemory/region/%2e%2e/unregister");
    expect(answer.status).toBe(400);
    expect(errorIn(answer)).toMatch(/^'\.\.' is not allowed as a region name/);
  });

  it("matches a target in absolute form, and one with a query", async () => {
    await using face = await Face.start();
    await face.registerNew("r");
    for (const target of [
      "http://anything:1/v2/cudasharedmemory/status",
      "HTTPS://[::1]/v2/cudasharedmemory/region/r/status",
      "/v2/cudasharedmemory/status?x=/../&y=%zz",
      "/v2/cudasharedmemory/status?",
    ]) {
      const answer = await face.raw(`GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
      expect(answer, target).toMatch(
        /^HTTP\/1\.1 200 OK.*\[\{"name":"r","device_id":0,"byte_size":4096\}\]$/s,
      );
    }
  });

  it.each(["OPTIONS", "GET", "PATCH"])(
    "answers 404 to %s of a target that has an authority and no path",
    async (method) => {
      await using face = await Face.start();
      for (const target of ["http://example.org", "http://example.org?x", "http://"]) {
        const answer = await face.raw(`${method} ${target} HTTP/1.1\r\nConnection: close\r\n\r\n`);
        expect(answer, target).toMatch(/^HTTP\/1\.1 404 .*\{"error":"Not Found"\}$/s);
      }
      expect(face.faults).toEqual([]);
    },
  );

  it.each(["%", "%4", "%zz", "%C0%AF", "%ED%A0%80", "%80"])(
    "answers 400 for a name of %j",
    async (segment) => {
      await using face = await Face.start();
      for (const [method, last] of [
        ["GET", "status"],
        ["POST", "register"],
        ["POST", "unregister"],
      ] as const) {
        const answer = await face.send(method, `/v2/cudasharedmemory/region/${segment}/${last}`);
        expect(answer.status).toBe(400);
        expect(errorIn(answer)).toContain("is not percent-encoded UTF-8");
      }
    },
  );

  it.each([
    "a/b",
    "my region",
    "100%",
    "%41",
    "a%2541",
    "入力",
    "__proto__",
    "toString",
    "a?b#c",
    "\ufeffx",
    "x".repeat(1024),
  ])("knows a region by the name %j from register to unregister", async (name) => {
    await using face = await Face.start();
    await face.registerNew(name);
    expect(face.names()).toEqual([name]);
    const one = await face.get(`/v2/cudasharedmemory/region/${encodeURIComponent(name)}/status`);
    expect(JSON.parse(one.text)).toEqual([{ name, device_id: 0, byte_size: 4096 }]);
    expect((await face.get("/v2/cudasharedmemory/status")).text).toBe(one.text);
    await face.post(`/v2/cudasharedmemory/region/${encodeURIComponent(name)}/unregister`);
    expect(face.names()).toEqual([]);
  });
});

describe("Host", () => {
  it.each([
    ["none, over HTTP/1.1", "HTTP/1.1", ""],
    ["none, over HTTP/1.0", "HTTP/1.0", ""],
    ["an empty one", "HTTP/1.1", "Host:\r\n"],
    ["one with a slash", "HTTP/1.1", "Host: a/b\r\n"],
    ["one with blanks and quotes", "HTTP/1.1", 'Host: "a b"\r\n'],
    ["an IPv6 address", "HTTP/1.1", "Host: [::1]:8000\r\n"],
    ["one with a user", "HTTP/1.1", "Host: u@h\r\n"],
    ["two", "HTTP/1.1", "Host: a\r\nHost: b\r\n"],
  ])("does not matter: %s", async (_what, version, header) => {
    await using face = await Face.start();
    const answer = await face.raw(
      `GET /v2/cudasharedmemory/status ${version}\r\n${header}Connection: close\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n.*\r\n\r\n\[\]$/s);
  });
});
