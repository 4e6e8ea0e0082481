import { describe, expect, it } from "vitest";
import { exitingText, RegistryError } from "../../../src/core/errors.js";
import { FakeClock } from "../../helpers/fake-clock.js";
import { driverError } from "../../helpers/fake-driver.js";
import { context } from "../../helpers/registry-harness.js";
import { Face } from "../face.js";
import { bodyOf, pathOf, put, refusalOf } from "./regions.js";

const remove = (face: Face, query = "") => face.send("DELETE", pathOf("r") + query);

describe("DELETE /v1/regions/{name}", () => {
  it("unregisters, once", async () => {
    await using face = await Face.start();
    await face.registerNew("r");
    expect((await remove(face)).text).toBe('{"closed":true,"pins":0}');
    expect(face.driver.openMappings).toBe(0);
    expect(refusalOf(await remove(face))).toEqual([
      404,
      "NOT_FOUND",
      "Unable to find cuda shared memory region: 'r'",
    ]);
  });

  it("by force answers a writer who sends no more", async () => {
    await using face = await Face.start({ allowContents: true });
    await face.registerNew("r");
    const writer = await face.open();
    writer.send(`PUT ${pathOf("r")}/contents HTTP/1.1\r\nContent-Length: 64\r\n\r\nstalled`);
    await expect.poll(() => face.registry.status("r").pins).toBe(1);
    expect(bodyOf(await remove(face, "?force=true"))).toEqual({ closed: true, pins: 0 });
    const answer = await writer.until(/HTTP\/1\.1 (\d+)[^{]*(\{[^}]*\})/);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain(
      '{"error":"shared memory region \'r\' was unregistered by force; nothing was written"}',
    );
  });

  it("ignores a body, and the connection goes on", async () => {
    await using face = await Face.start();
    await face.registerNew("r");
    const connection = await face.open();
    connection.send(`DELETE ${pathOf("r")} HTTP/1.1\r\nContent-Length: 70000\r\n\r\n${"x".repeat(70_000)}`);
    connection.send("GET /v2/health/live HTTP/1.1\r\nConnection: close\r\n\r\n");
    expect((await connection.untilClosed()).match(/HTTP\/1\.1 \d+/g)).toEqual([
      "HTTP/1.1 200",
      "HTTP/1.1 200",
    ]);
    expect(face.names()).toEqual([]);
  });

  it("tells at once that it is still used, and lets nobody else begin", async () => {
    await using face = await Face.start();
    await face.registerNew("r");
    const pin = face.registry.pin("r", null, context);
    expect(bodyOf(await remove(face))).toEqual({ closed: false, pins: 1 });
    expect(bodyOf(await face.get(pathOf("r")))).toMatchObject({ state: "draining", pins: 1 });
    expect(refusalOf(await face.get(pathOf("r", "/contents")))).toEqual([
      400,
      "FAILED_PRECONDITION",
      "shared memory region 'r' is being unregistered",
    ]);
    pin.release();
    while (face.names().length > 0) await face.get("/v2/health/live");
    expect(face.driver.openMappings).toBe(0);
  });

  it("waits until the memory can be freed", async () => {
    const clock = new FakeClock();
    await using face = await Face.start({ clock });
    await face.registerNew("r");
    const pin = face.registry.pin("r", null, context);
    const waiting = remove(face, "?wait=5s");
    while (clock.pending === 0) await face.get("/v2/health/live");
    pin.release();
    expect(bodyOf(await waiting)).toEqual({ closed: true, pins: 0 });
    expect([face.driver.openMappings, clock.pending]).toEqual([0, 0]);
  });

  it("says after the wait who still uses it, and goes on with it", async () => {
    const clock = new FakeClock();
    await using face = await Face.start({ clock });
    await face.registerNew("r");
    const pin = face.registry.pin("r", null, context);
    const waiting = remove(face, "?wait=2m");
    while (clock.pending === 0) await face.get("/v2/health/live");
    clock.advance(120_000);
    expect(refusalOf(await waiting)).toEqual([
      504,
      "DEADLINE_EXCEEDED",
      "shared memory region 'r' is unregistered and still used by 1; its mapping is closed when they let go",
    ]);
    pin.release();
    while (face.names().length > 0) await face.get("/v2/health/live");
  });

  it("takes it by force from whoever uses it, after the wait", async () => {
    const clock = new FakeClock();
    await using face = await Face.start({ clock });
    await face.registerNew("r");
    const pin = face.registry.pin("r", null, context);
    const waiting = remove(face, "?wait=1s&force=true");
    while (clock.pending === 0) await face.get("/v2/health/live");
    clock.advance(1000);
    expect(bodyOf(await waiting)).toEqual({ closed: true, pins: 0 });
    await expect(pin.read(0n, new Uint8Array(1))).rejects.toThrow(/was unregistered by force/);
    expect(face.driver.openMappings).toBe(0);
  });

  it("leaves a region of another generation alone", async () => {
    await using face = await Face.start();
    await face.registerNew("r");
    expect(refusalOf(await remove(face, "?generation=7"))).toEqual([
      400,
      "FAILED_PRECONDITION",
      "shared memory region 'r' has generation 1, not 7: it was registered anew",
    ]);
    expect(face.names()).toEqual(["r"]);
    expect(bodyOf(await remove(face, "?generation=1&force=false"))).toMatchObject({ closed: true });
  });

  it("says why the driver would not take it back", async () => {
    await using face = await Face.start();
    await face.registerNew("r");
    face.driver.beforeClose = () => {
      throw driverError(700, "CUDA_ERROR_ILLEGAL_ADDRESS", "cuIpcCloseMemHandle");
    };
    const [status, code, text] = refusalOf(await remove(face, "?wait=1s"));
    expect([status, code]).toEqual([500, "INTERNAL"]);
    expect(text).toMatch(/^failed to close CUDA IPC handle: /);
    expect(bodyOf(await face.get(pathOf("r")))).toMatchObject({ state: "close_failed" });
    face.driver.beforeClose = undefined;
  });

  it.each([
    ["?wait=5", "'wait' must be a duration such as 5s, 1500ms or 2m"],
    ["?wait=5m1s", "'wait' must be a duration such as 5s, 1500ms or 2m"],
    ["?wait=300001ms", "a wait lasts 0 to 300 seconds, got 300.001"],
    ["?force=yes", "'force' must be true or false"],
    ["?force", "'force' must be true or false"],
    ["?generation=-1", "'generation' must be a whole number from 0 to 18446744073709551615"],
    ["?forced=true", "unknown query parameter 'forced'; did you mean 'force'?"],
    ["?force=true&force=true", "'force' must be given at most once"],
  ])("refuses %s and unregisters nothing", async (query, text) => {
    await using face = await Face.start();
    await face.registerNew("r");
    expect(refusalOf(await remove(face, query))).toEqual([400, "INVALID_ARGUMENT", text]);
    expect(face.names()).toEqual(["r"]);
  });

  it("stops waiting when the service stops", async () => {
    const clock = new FakeClock();
    await using face = await Face.start({ clock });
    await face.registerNew("r");
    const pin = face.registry.pin("r", null, context);
    const waiting = remove(face, "?wait=5m&force=true");
    while (clock.pending === 0) await face.get("/v2/health/live");
    face.shutdown.abort(new RegistryError("UNAVAILABLE", exitingText));
    expect(refusalOf(await waiting)).toEqual([503, "UNAVAILABLE", exitingText]);
    expect(clock.pending).toBe(0);
    await pin.read(0n, new Uint8Array(1));
    pin.release();
  });

  it("stops waiting when the client leaves, and forces nothing", async () => {
    const clock = new FakeClock();
    await using face = await Face.start({ clock });
    await face.registerNew("r");
    const pin = face.registry.pin("r", null, context);
    const connection = await face.open();
    connection.send(`DELETE ${pathOf("r")}?wait=5m&force=true HTTP/1.1\r\n\r\n`);
    while (clock.pending === 0) await face.get("/v2/health/live");
    connection.socket.destroy();
    while (clock.pending > 0) await face.get("/v2/health/live");
    await pin.read(0n, new Uint8Array(1));
    pin.release();
    expect(face.faults).toEqual([]);
  });
});

describe("POST /v1/regions/{name}/renew", () => {
  const renew = (face: Face, body?: string) => face.post(pathOf("r", "/renew"), body);

  it("starts the lease anew, as long as it was or as long as is said", async () => {
    const clock = new FakeClock();
    await using face = await Face.start({ clock });
    await put(face, "r", face.driver.allocate(64), { lease_seconds: 10 });
    clock.advance(9999);
    expect(bodyOf(await renew(face))).toMatchObject({
      lease_seconds: 10,
      lease_expires_at: new Date(clock.now() + 10_000).toISOString(),
    });
    clock.advance(9999);
    const longer = bodyOf(await renew(face, '{"lease_seconds":60.25,"generation":1}'));
    expect(longer).toMatchObject({
      lease_seconds: 60.25,
      lease_expires_at: new Date(clock.now() + 60_250).toISOString(),
    });
    expect(bodyOf(await renew(face, "{}"))).toEqual(longer);
    clock.advance(60_250);
    while (face.names().length > 0) await face.get("/v2/health/live");
    expect((await renew(face)).status).toBe(404);
  });

  it("gives a lease to a region that had none", async () => {
    const clock = new FakeClock();
    await using face = await Face.start({ clock });
    await face.registerNew("r");
    expect(refusalOf(await renew(face))).toEqual([
      400,
      "FAILED_PRECONDITION",
      "shared memory region 'r' has no lease; say how long it shall be",
    ]);
    expect(bodyOf(await renew(face, '{"lease_seconds":1}'))).toMatchObject({ lease_seconds: 1 });
  });

  it.each([
    ["{", /^failed to parse the request JSON buffer: /],
    ["[]", /^the body must be an object$/],
    ['{"lease_seconds":"1"}', /^'lease_seconds' must be a number of seconds with at most 3 decimals$/],
    ['{"lease_seconds":0}', /^a lease lasts 1 to 604800 seconds, got 0$/],
    ['{"leaseseconds":1}', /^unknown member 'leaseseconds'; did you mean 'lease_seconds'\?$/],
    ['{"generation":-1}', /^'generation' must be a whole number/],
  ])("refuses %s", async (body, text) => {
    await using face = await Face.start();
    await put(face, "r", face.driver.allocate(64), { lease_seconds: 10 });
    const [status, code, error] = refusalOf(await renew(face, body));
    expect([status, code]).toEqual([400, "INVALID_ARGUMENT"]);
    expect(error).toMatch(text);
  });

  it("refuses a query, another generation, and a region on its way out", async () => {
    await using face = await Face.start();
    await put(face, "r", face.driver.allocate(64), { lease_seconds: 10 });
    expect((await face.post(`${pathOf("r", "/renew")}?generation=1`)).status).toBe(400);
    expect(refusalOf(await renew(face, '{"generation":2}'))[1]).toBe("FAILED_PRECONDITION");
    using _ = face.registry.pin("r", null, context);
    await remove(face);
    expect(refusalOf(await renew(face))[2]).toBe("shared memory region 'r' is being unregistered");
  });
});
