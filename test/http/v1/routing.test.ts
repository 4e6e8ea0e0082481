import { describe, expect, it } from "vitest";
import { Gate } from "../../../src/core/gate.js";
import { InFlight } from "../../../src/core/in-flight.js";
import { Restrictions } from "../../../src/core/restrictions.js";
import { FakeClock } from "../../helpers/fake-clock.js";
import { Face } from "../face.js";
import { pathOf } from "./regions.js";

const allowed = [
  ["/v1", "GET, HEAD"],
  ["/v1/devices", "GET, HEAD"],
  ["/v1/events", "GET, HEAD"],
  ["/v1/regions", "GET, HEAD"],
  [pathOf("a/b"), "GET, HEAD, PUT, DELETE"],
  [pathOf("r", "/renew"), "POST"],
  [pathOf("r", "/checksum"), "GET, HEAD"],
  [pathOf("r", "/contents"), "GET, HEAD, PUT"],
] as const;

describe("a path under /v1", () => {
  it.each(allowed)("%s says which methods it takes", async (path, methods) => {
    await using face = await Face.start();
    for (const method of ["PATCH", "OPTIONS", "TRACE", "POST", "DELETE", "PUT", "PROPFIND"]) {
      if (methods.includes(method)) continue;
      const { status, headers } = await face.send(method, path);
      expect([method, status, headers.allow]).toEqual([method, 405, methods]);
    }
    expect(face.faults).toEqual([]);
  });

  it.each(allowed.filter(([, methods]) => methods.includes("HEAD")))(
    "%s answers HEAD as GET, without a body",
    async (path) => {
      await using face = await Face.start();
      await face.registerNew("a/b");
      await face.registerNew("r");
      const { status, text } = await face.send("HEAD", path);
      expect([status, text]).toEqual([200, ""]);
      expect(face.registry.status("r").pins).toBe(0);
    },
  );

  it.each([
    "/v1/",
    "/v1/regions/",
    "/v1/regions/a/",
    "/v1/regions/a/b",
    "/v1/regions//renew",
    "/v1/device",
    "/V1",
  ])("%s is none", async (path) => {
    await using face = await Face.start();
    for (const method of ["GET", "PUT", "DELETE", "POST"]) {
      expect([method, (await face.send(method, path)).status]).toEqual([method, 404]);
    }
  });
});

describe("a web page", () => {
  const page = "https://dashboard.example";

  it("that is not listed changes and sees nothing", async () => {
    await using face = await Face.start();
    await face.registerNew("r");
    for (const [method, path] of [
      ["GET", "/v1"],
      ["GET", "/v1/regions"],
      ["GET", "/v1/events"],
      ["PUT", pathOf("x")],
      ["DELETE", pathOf("r")],
      ["POST", pathOf("r", "/renew")],
    ] as const) {
      const { status } = await face.send(method, path, { headers: { origin: page }, body: "" });
      expect([method, path, status]).toEqual([method, path, 403]);
    }
    expect(face.names()).toEqual(["r"]);
  });

  it("that is listed is told in advance what it may send, and may then", async () => {
    await using face = await Face.start({ allowedOrigins: [page] });
    await face.registerNew("r");
    const asked = await face.send("OPTIONS", pathOf("r"), {
      headers: { origin: page, "access-control-request-method": "DELETE" },
    });
    expect(asked.headers).toMatchObject({
      "access-control-allow-origin": page,
      "access-control-allow-methods": "GET, HEAD, PUT, DELETE",
    });
    const { status, headers } = await face.send("DELETE", pathOf("r"), { headers: { origin: page } });
    expect([status, headers["access-control-allow-origin"]]).toEqual([200, page]);
    const events = await face.send("HEAD", "/v1/events", { headers: { origin: page } });
    expect(events.headers["access-control-allow-origin"]).toBe(page);
  });

  it("of a name made to mean this machine is not answered", async () => {
    await using face = await Face.start({ allowedHosts: [] });
    const headers = { host: "rebound.example" };
    for (const [method, path] of [
      ["GET", "/v1/events"],
      ["DELETE", pathOf("r")],
    ] as const) {
      expect((await face.send(method, path, { headers })).status).toBe(403);
    }
  });
});

describe("the gate", () => {
  it.each([
    ["metadata", ["/v1", "/v1/devices"], ["/v1/regions", "/v1/events"]],
    [
      "shared-memory",
      ["/v1/regions", "/v1/events", pathOf("r"), pathOf("r", "/checksum")],
      ["/v1", "/v1/devices"],
    ],
  ] as const)("restricts %s", async (category, restricted, open) => {
    const restrictions = Restrictions.ofHttp([{ categories: [category], key: "Key", value: "s3cret" }]);
    await using face = await Face.start({ gate: new Gate({ restrictions }) });
    await face.registry.register(
      { name: "r", handle: face.driver.allocate(64).handle, deviceId: 0n, byteSize: 64n },
      { owner: "anonymous", protocol: "library", requestId: "" },
    );
    for (const path of restricted) {
      expect([path, (await face.send("HEAD", path)).status]).toEqual([path, 403]);
      const headers = { key: "s3cret" };
      expect([path, (await face.send("HEAD", path, { headers })).status]).toEqual([path, 200]);
    }
    for (const path of open) expect([path, (await face.send("HEAD", path)).status]).toEqual([path, 200]);
  });

  it("counts a call that waits as long as it does", async () => {
    const clock = new FakeClock();
    await using face = await Face.start({ clock, gate: new Gate({ inFlight: new InFlight(1) }) });
    const waiting = face.get(`${pathOf("r")}?wait=5s`);
    while (clock.pending === 0) await face.get("/v2/health/live");
    expect((await face.get("/v1/regions")).status).toBe(429);
    clock.advance(5000);
    expect((await waiting).status).toBe(504);
    expect((await face.get("/v1/regions")).status).toBe(200);
  });
});
