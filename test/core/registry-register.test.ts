import { expect, test } from "vitest";
import { RegionRegistry } from "../../src/core/registry.js";
import { FakeDriver } from "../helpers/fake-driver.js";

const context = { owner: "anonymous", protocol: "library", requestId: "r1" } as const;

test("a registered region is listed until it is unregistered", async () => {
  const driver = new FakeDriver();
  const registry = new RegionRegistry({ driver, now: () => 1234 });
  const { handle } = driver.allocate(4096, 1);

  const region = await registry.register({ name: "r1", handle, deviceId: 1n, byteSize: 64n }, context);

  expect(region).toEqual({
    name: "r1",
    deviceId: 1,
    byteSize: 64n,
    allocationByteSize: 4096n,
    state: "ready",
    generation: 1n,
    owner: "anonymous",
    protocol: "library",
    registeredAt: 1234,
    pins: 0,
  });
  expect(registry.statuses()).toEqual([region]);
  expect(registry.status("r1")).toEqual(region);
  expect([registry.mappings, driver.openMappings, registry.revision]).toEqual([1, 1, 1n]);

  await registry.unregister("r1", context);
  expect(registry.statuses()).toEqual([]);
  expect([registry.mappings, driver.openMappings, registry.revision]).toEqual([0, 0, 2n]);
});
