import { describe, expect, it } from "vitest";
import { exitingText, RegistryError } from "../../../src/core/errors.js";
import { createDeferred } from "../../helpers/deferred.js";
import { driverError } from "../../helpers/fake-driver.js";
import { Face } from "../face.js";
import { put, refusalOf } from "./regions.js";

describe("GET /v1", () => {
  it("tells which run of the service it is, and its policy", async () => {
    await using face = await Face.start({
      registry: { policy: { access: "shared", unregisterAll: "own" }, revision: 9007199254740993n },
    });
    expect((await face.get("/v1")).text).toBe(
      `{"name":"cudashm","version":"1.2.3","instance_id":"test","epoch":1,"revision":9007199254740993,` +
        `"access":"shared","unregister_all":"own","adoption":{"pending":0,"adopted":0,"refused":[]}}`,
    );
    await face.registerNew("a");
    expect((await face.get("/v1")).text).toContain('"revision":9007199254740994');
  });

  it("tells what was not taken up again to those who would see it", async () => {
    for (const access of ["shared", "owner"] as const) {
      await using face = await Face.start({ registry: { policy: { access, unregisterAll: "all" } } });
      const { handle } = face.driver.allocate(64);
      await face.registry.adopt(
        {
          name: "r",
          generation: 18446744073709551615n,
          handle,
          deviceId: 0,
          deviceUuid: "GPU-00000000-0000-0000-0000-000000000000",
          byteSize: 64n,
          offset: 0n,
          owner: "alice",
          session: null,
          protocol: "http",
          registeredAt: 0,
          leaseMs: null,
          exporter: null,
          labels: new Map(),
        },
        { whenUsable: Promise.resolve(), allowsUnverified: false },
      );
      const { text } = await face.get("/v1");
      expect(text).toContain('"adoption":{"pending":0,"adopted":0,"refused":[');
      expect(
        text.includes('{"name":"r","generation":18446744073709551615,"reason":"its exporter was not'),
      ).toBe(access === "shared");
    }
  });

  it("takes no parameter", async () => {
    await using face = await Face.start();
    for (const path of ["/v1?a=1", "/v1/devices?a=1"]) {
      expect(refusalOf(await face.get(path))).toEqual([
        400,
        "INVALID_ARGUMENT",
        "unknown query parameter; none is expected",
      ]);
    }
  });
});

describe("GET /v1/devices", () => {
  it("tells how much of each device is mapped, shared memory counted once", async () => {
    await using face = await Face.start();
    const allocation = face.driver.allocate(4096, 1);
    await put(face, "a", allocation);
    await put(face, "b", allocation, { byte_size: 64 });
    const device = (ordinal: number, mapped: number, regions: number) =>
      `{"ordinal":${ordinal},"uuid":"GPU-00000000-0000-0000-0000-00000000000${ordinal}",` +
      `"pci_bus_id":"0000:0${ordinal}:00.0","name":"Fake GPU ${ordinal}","total_bytes":8589934592,` +
      `"free_bytes":null,"mapped_bytes":${mapped},"regions":${regions}}`;
    expect((await face.get("/v1/devices")).text).toBe(
      `{"devices":[${device(0, 0, 0)},${device(1, 4096, 2)}]}`,
    );
  });

  it("says why there are none to list", async () => {
    await using face = await Face.start();
    face.driver.devicesError = driverError(100, "CUDA_ERROR_NO_DEVICE", "cuInit");
    const [status, code, text] = refusalOf(await face.get("/v1/devices"));
    expect([status, code]).toEqual([503, "UNAVAILABLE"]);
    expect(text).toMatch(/CUDA_ERROR_NO_DEVICE/);
    expect(face.faults).toEqual([]);
  });

  it("waits for no driver that hangs once the service stops", async () => {
    await using face = await Face.start();
    const asked = createDeferred();
    face.driver.devices = () => {
      asked.resolve();
      return new Promise(() => {});
    };
    const answer = face.get("/v1/devices");
    await asked.promise;
    face.shutdown.abort(new RegistryError("UNAVAILABLE", exitingText));
    expect(refusalOf(await answer)).toEqual([503, "UNAVAILABLE", exitingText]);
  });
});
