import { describe, expect, it } from "vitest";
import { encodeStatuses } from "../../src/http/status-json.js";
import { driverError } from "../helpers/fake-driver.js";
import { Face, registerBody } from "./face.js";

const errorIn = (answer: { text: string }): unknown => JSON.parse(answer.text).error;
const cuda = "/v2/cudasharedmemory";
const system = "/v2/systemsharedmemory";

describe("status over HTTP", () => {
  it("is an empty array without regions", async () => {
    await using face = await Face.start();
    const answer = await face.get(`${cuda}/status`);
    expect(answer).toMatchObject({ status: 200, text: "[]" });
    expect(answer.headers).toMatchObject({ "content-type": "application/json", "content-length": "2" });
  });

  it("is compact, sorted by the names' bytes, and follows every change", async () => {
    await using face = await Face.start();
    for (const name of ["b", "\u{1f600}", "\uff5e", "B"]) await face.registerNew(name, 64);
    const shown = (names: string[]) =>
      `[${names.map((name) => `{"name":"${name}","device_id":0,"byte_size":64}`).join(",")}]`;
    expect((await face.get(`${cuda}/status`)).text).toBe(shown(["B", "b", "\uff5e", "\u{1f600}"]));
    await face.post(`${cuda}/region/b/unregister`);
    expect((await face.get(`${cuda}/status`)).text).toBe(shown(["B", "\uff5e", "\u{1f600}"]));
  });

  it("is never compressed, whatever the client would take and however long it is", async () => {
    await using face = await Face.start();
    const { handle } = face.driver.allocate(64);
    const names = Array.from({ length: 50 }, (_, i) => String(i).padStart(1024, "x"));
    await Promise.all(
      names.map((name) =>
        face.registry.register(
          { name, handle, deviceId: 0n, byteSize: 64n },
          { owner: "anonymous", protocol: "library", requestId: "" },
        ),
      ),
    );
    for (const path of [`${cuda}/status`, `${cuda}/region/${names[0]}/status`, "/v2", "/nowhere"]) {
      const answer = await face.send("GET", path, { headers: { "accept-encoding": "gzip, deflate, br, *" } });
      expect(answer.headers["content-encoding"], path).toBeUndefined();
      expect(answer.text, path).toMatch(/^[[{]/);
    }
  });

  it("keeps every digit and escapes names", () => {
    const region = {
      name: 'a"\\\u2028',
      deviceId: 7,
      byteSize: 2n ** 64n - 1n,
      allocationByteSize: 2n ** 64n - 1n,
      state: "ready",
      generation: 1n,
      owner: "anonymous",
      protocol: "http",
      registeredAt: 0,
      pins: 0,
    } as const;
    const json = encodeStatuses([region]);
    expect(json).toBe('[{"name":"a\\"\\\\\u2028","device_id":7,"byte_size":18446744073709551615}]');
    expect(JSON.parse(json)[0].name).toBe(region.name);
  });

  it("says that a region is unknown", async () => {
    await using face = await Face.start();
    const answer = await face.get(`${cuda}/region/nobody/status`);
    expect(answer.status).toBe(404);
    expect(errorIn(answer)).toBe("Unable to find cuda shared memory region: 'nobody'");
    expect(face.faults).toEqual([]);
  });
});

describe("unregister over HTTP", () => {
  it("closes one region and leaves the others", async () => {
    await using face = await Face.start();
    await face.registerNew("a");
    await face.registerNew("b");
    const answer = await face.post(`${cuda}/region/a/unregister`);
    expect(answer).toMatchObject({ status: 200, text: "" });
    expect(answer.headers).toMatchObject({ "content-type": "application/json", "content-length": "0" });
    expect(face.names()).toEqual(["b"]);
    expect(face.driver.openMappings).toBe(1);
  });

  it("does nothing for a name that is unknown", async () => {
    await using face = await Face.start();
    expect(await face.post(`${cuda}/region/nobody/unregister`)).toMatchObject({ status: 200, text: "" });
  });

  it("closes every region", async () => {
    await using face = await Face.start();
    await face.registerNew("a");
    await face.registerNew("b");
    expect(await face.post(`${cuda}/unregister`)).toMatchObject({ status: 200, text: "" });
    expect(face.names()).toEqual([]);
    expect(face.driver.openMappings).toBe(0);
  });

  it.each([
    ["JSON", "{}"],
    ["no JSON", "{"],
    ["bytes", Buffer.from([0xff, 0])],
    ["more than the limit", "x".repeat(3_000_000)],
  ])("ignores a body of %s", async (_what, body) => {
    await using face = await Face.start();
    await face.registerNew("a");
    expect((await face.post(`${cuda}/unregister`, body)).status).toBe(200);
    expect(face.names()).toEqual([]);
  });

  it("says why a close failed, reports it, and lets it be tried again", async () => {
    await using face = await Face.start();
    await face.registerNew("a");
    face.driver.beforeClose = () => Promise.reject(driverError(400, "CUDA_ERROR_INVALID_HANDLE"));
    const answer = await face.post(`${cuda}/region/a/unregister`);
    expect(answer.status).toBe(500);
    expect(errorIn(answer)).toMatch(/^failed to close CUDA IPC handle: .*CUDA_ERROR_INVALID_HANDLE/);
    expect(face.faults).toMatchObject([{ requestId: answer.headers["x-request-id"] }]);
    expect(errorIn(await face.post(`${cuda}/unregister`))).toMatch(
      /^Failed to unregister the following cuda shared memory regions: a ,/,
    );
    face.driver.beforeClose = undefined;
    expect((await face.post(`${cuda}/region/a/unregister`)).status).toBe(200);
    expect(face.names()).toEqual([]);
  });
});

describe("system shared memory over HTTP", () => {
  it("holds nothing, forgets nothing, and touches no CUDA region", async () => {
    await using face = await Face.start();
    await face.registerNew("a");
    expect(await face.get(`${system}/status`)).toMatchObject({ status: 200, text: "[]" });
    expect(await face.post(`${system}/unregister`)).toMatchObject({ status: 200, text: "" });
    expect(await face.post(`${system}/region/a/unregister`)).toMatchObject({ status: 200, text: "" });
    expect(face.names()).toEqual(["a"]);
    const answer = await face.get(`${system}/region/a/status`);
    expect(answer.status).toBe(404);
    expect(errorIn(answer)).toBe("Unable to find system shared memory region: 'a'");
  });

  it("cannot be registered, and says what can", async () => {
    await using face = await Face.start();
    for (const path of [`${system}/register`, `${system}/region/a/register`]) {
      const answer = await face.post(path, '{"key":"/k","offset":0,"byte_size":64}');
      expect(answer.status).toBe(501);
      expect(errorIn(answer)).toBe(
        "system shared memory is not supported: this service registers CUDA shared memory only",
      );
    }
  });
});

describe("health and metadata over HTTP", () => {
  it("follows the service's readiness", async () => {
    await using face = await Face.start();
    const statuses = async () =>
      [await face.get("/v2/health/live"), await face.get("/v2/health/ready")].map(({ status, text }) => [
        status,
        text,
      ]);
    expect(await statuses()).toEqual([
      [200, ""],
      [200, ""],
    ]);
    face.readiness = "not_ready";
    expect(await statuses()).toEqual([
      [200, ""],
      [400, ""],
    ]);
    face.readiness = "exiting";
    const exiting = [503, '{"error":"Server exiting"}'];
    expect(await statuses()).toEqual([exiting, exiting]);
  });

  it("says what the service is and which driver it has", async () => {
    await using face = await Face.start();
    expect((await face.get("/v2")).text).toBe(
      '{"name":"cudashm","version":"1.2.3","extensions":["cuda_shared_memory"],"cuda_driver":"emulated","instance_id":"test","epoch":1}',
    );
  });

  it("is answered while an open is under way", async () => {
    await using face = await Face.start();
    let finish = () => {};
    face.driver.beforeOpen = () =>
      new Promise<void>((resolve) => {
        finish = resolve;
      });
    const registering = face.register("slow", registerBody(face.driver.allocate(64), 64));
    while (face.driver.openCalls === 0) await face.get("/v2/health/live");
    expect((await face.get(`${cuda}/status`)).text).toBe("[]");
    expect((await face.post(`${cuda}/region/other/unregister`)).status).toBe(200);
    finish();
    expect((await registering).status).toBe(200);
  });
});
