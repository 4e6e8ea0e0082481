import { Hono } from "hono";
import { describe, expect, it } from "vitest";
import { httpStatuses } from "../../src/http/errors.js";
import { Face, registerBody } from "./face.js";

describe("the application without a socket", () => {
  it("registers, lists, shows and unregisters by app.request", async () => {
    await using face = await Face.start();
    const { app } = face;
    const body = registerBody(face.driver.allocate(64), 64);
    const registered = await app.request("/v2/cudasharedmemory/region/a%2Fb/register", {
      method: "POST",
      body,
    });
    expect(registered.status).toBe(200);
    expect(registered.headers.get("content-type")).toBe("application/json");
    expect(registered.headers.get("x-request-id")).toBeTruthy();
    const status = await app.request("/v2/cudasharedmemory/status?x");
    expect(await status.text()).toBe('[{"name":"a/b","device_id":0,"byte_size":64}]');
    await app.request("/v2/cudasharedmemory/unregister", { method: "POST" });
    expect(face.names()).toEqual([]);
  });

  it("answers errors as on a socket", async () => {
    await using face = await Face.start({ maxInputSize: 10 });
    const { app } = face;
    const register = (body?: string) =>
      app.request("/v2/cudasharedmemory/region/r/register", {
        method: "POST",
        ...(body === undefined ? {} : { body }),
      });
    expect(await (await register("x".repeat(11))).json()).toEqual({
      error: expect.stringMatching(/^request JSON size of 11 bytes exceeds/),
    });
    expect(await (await register()).json()).toEqual({
      error: expect.stringMatching(/the body is empty at 0$/),
    });
    const wrongMethod = await app.request("/v2/cudasharedmemory/status", { method: "POST" });
    expect(wrongMethod.status).toBe(405);
    expect(wrongMethod.headers.get("allow")).toBe("GET, HEAD");
    expect(await (await app.request("/nowhere")).json()).toEqual({ error: "Not Found" });
  });

  it("reads and writes contents", async () => {
    await using face = await Face.start();
    const { bytes } = await face.registerNew("r", 8);
    const path = "/v1/regions/r/contents";
    const write = await face.app.request(`${path}?offset=1`, { method: "PUT", body: Uint8Array.of(7, 8) });
    expect(write.status).toBe(200);
    expect(bytes).toEqual(Uint8Array.of(0, 7, 8, 0, 0, 0, 0, 0));
    const read = await face.app.request(`${path}?byte_size=3`);
    expect(new Uint8Array(await read.arrayBuffer())).toEqual(Uint8Array.of(0, 7, 8));
  });

  it("can be a part of another application", async () => {
    await using face = await Face.start();
    await face.registerNew("r", 8);
    const outer = new Hono().get("/own", (c) => c.text("own")).route("/", face.app);
    expect(await (await outer.request("/own")).text()).toBe("own");
    const status = await outer.request("/v2/cudasharedmemory/region/r/status");
    expect(await status.json()).toEqual([{ name: "r", device_id: 0, byte_size: 8 }]);
    expect((await outer.request("/v2/cudasharedmemory/region/x/status")).status).toBe(404);
  });
});

describe("the table of statuses", () => {
  it("never calls a client's fault a fault of ours", () => {
    const clients = [
      "INVALID_ARGUMENT",
      "NOT_FOUND",
      "ALREADY_EXISTS",
      "PERMISSION_DENIED",
      "UNAUTHENTICATED",
    ] as const;
    for (const code of [
      ...clients,
      "FAILED_PRECONDITION",
      "OUT_OF_RANGE",
      "RESOURCE_EXHAUSTED",
      "CANCELLED",
    ] as const) {
      expect(httpStatuses[code], code).toBeLessThan(500);
    }
    expect(httpStatuses.ALREADY_EXISTS).toBe(400);
    expect(httpStatuses.UNAVAILABLE).toBe(503);
    expect(httpStatuses.INTERNAL).toBe(500);
  });
});
