import { describe, expect, it } from "vitest";
import { operations } from "../../src/http/operations.js";
import { type Part, resolve, served, undescribed } from "./described-answer.js";
import { Face } from "./face.js";

const describedOperations = Object.entries<Part>(served.paths).flatMap(([path, item]) =>
  Object.entries<Part>(item).map(([method, operation]) => ({ path, method, operation })),
);

function everyPart(part: Part): Part[] {
  if (typeof part !== "object" || part === null) return [];
  return [part, ...Object.values(part).flatMap(everyPart)];
}

describe("GET /openapi.json", () => {
  it("is the OpenAPI 3.1 document of this version of the service", async () => {
    await using face = await Face.start();
    const answer = await face.get("/openapi.json");
    expect(answer.status).toBe(200);
    expect(answer.headers["content-type"]).toBe("application/json");
    expect(answer.headers["content-length"]).toBe(String(answer.bytes.byteLength));
    expect(JSON.parse(answer.text)).toEqual(served);
    expect(served).toMatchObject({ openapi: "3.1.0", info: { title: "cudashm", version: "1.2.3" } });
  });

  it("spells 64-bit limits in all their digits", async () => {
    await using face = await Face.start();
    const { text } = await face.get("/openapi.json");
    expect(text.match(/"maximum":\d+/g)).toContain('"maximum":18446744073709551615');
    expect(text).not.toContain("18446744073709552000");
  });

  it("is the same from an application without a socket", async () => {
    await using face = await Face.start();
    expect(await (await face.app.request("/openapi.json")).json()).toEqual(served);
  });
});

describe("the document", () => {
  it("has every route that is served, and no other", async () => {
    await using face = await Face.start();
    const routes = face.app.routes.map(({ method, path }) => `${method} ${path}`);
    const described = describedOperations.map(
      ({ method, path }) => `${method.toUpperCase()} ${path.replace(/\{\w+\}/g, ":name")}`,
    );
    expect(described.sort()).toEqual(routes.sort());
    expect(described).toHaveLength(Object.keys(operations).length);
  });

  it("names each operation once, and declares the parameters of its path", () => {
    const ids = describedOperations.map(({ operation }) => operation.operationId);
    expect(ids.sort()).toEqual(Object.keys(operations).sort());
    for (const { path, operation } of describedOperations) {
      const inPath = (operation.parameters ?? [])
        .map((parameter: Part) => resolve(served, parameter))
        .filter((parameter: Part) => parameter.in === "path");
      expect(
        inPath.map(({ name }: Part) => `{${name}}`),
        path,
      ).toEqual(path.match(/\{\w+\}/g) ?? []);
    }
  });

  it("refers to nothing that is not there", () => {
    const ids = new Set(describedOperations.map(({ operation }) => operation.operationId));
    for (const part of everyPart(served)) {
      expect(resolve(served, part)).toBeDefined();
      for (const link of Object.values<Part>(part.links ?? {})) expect(ids).toContain(link.operationId);
    }
  });

  it("says of every answer that it carries an x-request-id, and of every error what it looks like", () => {
    for (const { path, operation } of describedOperations) {
      for (const [status, given] of Object.entries<Part>(operation.responses)) {
        const response = resolve(served, given);
        expect(response.headers["x-request-id"], `${path} ${status}`).toBeDefined();
        const isHealth = ["serverLive", "serverReady"].includes(operation.operationId);
        const empty = status === "200" || (isHealth && status === "400");
        if (empty) continue;
        expect(response.content["application/json"].schema.$ref).toBe("#/components/schemas/ErrorResponse");
      }
    }
  });

  it.each([
    ["cudaSharedMemoryRegister", [200, 400, 401, 403, 408, 413, 429, 431, 500, 501, 503]],
    ["cudaSharedMemoryRegionStatus", [200, 400, 401, 403, 404, 408, 413, 429, 431, 500]],
    ["systemSharedMemoryRegister", [400, 401, 403, 408, 413, 429, 431, 500, 501]],
    ["readRegionContents", [200, 400, 401, 403, 404, 408, 413, 429, 431, 500]],
    ["serverReady", [200, 400, 403, 408, 413, 431, 500, 503]],
  ])("lists every status of %s", (id, statuses) => {
    const found = describedOperations.find(({ operation }) => operation.operationId === id);
    expect(Object.keys(found?.operation.responses).map(Number)).toEqual(statuses);
  });
});

describe("the comparison of every answer in these tests with the document", () => {
  const headers = { "content-type": "application/json", "x-request-id": "1" };
  const statusPath = "/v2/cudasharedmemory/status";

  it.each([
    ["a status that is not listed", "GET", statusPath, { status: 418, headers, text: '{"error":"x"}' }],
    [
      "no request id",
      "GET",
      statusPath,
      { status: 200, headers: { ...headers, "x-request-id": undefined }, text: "[]" },
    ],
    [
      "another content type",
      "GET",
      statusPath,
      { status: 200, headers: { ...headers, "content-type": "text/plain" }, text: "[]" },
    ],
    [
      "a member that is missing",
      "GET",
      statusPath,
      { status: 200, headers, text: '[{"name":"r","device_id":0}]' },
    ],
    [
      "a size that is a string",
      "GET",
      statusPath,
      { status: 200, headers, text: '[{"name":"r","device_id":0,"byte_size":"1"}]' },
    ],
    ["an error without its text", "GET", "/nowhere", { status: 404, headers, text: "{}" }],
    [
      "a body where there is none",
      "POST",
      "/v2/cudasharedmemory/unregister",
      { status: 200, headers, text: "{}" },
    ],
    [
      "a code that does not exist",
      "GET",
      statusPath,
      { status: 400, headers: { ...headers, "x-error-code": "X" }, text: '{"error":"x"}' },
    ],
  ])("finds %s", (_, method, path, answer) => {
    expect(undescribed(method, path, answer)).not.toBeNull();
  });

  it("finds nothing wrong with an answer as it should be", () => {
    const text = '[{"name":"r","device_id":0,"byte_size":1}]';
    expect(undescribed("GET", `${statusPath}?x`, { status: 200, headers, text })).toBeNull();
  });
});
