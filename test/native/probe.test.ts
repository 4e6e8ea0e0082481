import { expect, test } from "vitest";
import { createCudaDriver } from "../../src/native/driver-selection.js";
import { emulatedCopy } from "../helpers/emulated-copy.js";

async function load(faults: string) {
  const copy = emulatedCopy({ CUDASHM_EMULATED_DEVICE_COUNT: "2", CUDASHM_EMULATED_FAULTS: faults });
  const driver = createCudaDriver({ preference: "emulated", libraryPath: copy.path, contextLingerMs: 0 });
  await copy.withVariables(() => driver.devices());
  return { driver, log: copy.log, [Symbol.dispose]: () => copy[Symbol.dispose]() };
}

test("a probe asks the driver about each device, and makes a context on those in use only", async () => {
  using loaded = await load("");
  const before = loaded.log.count("cuDeviceGetName");
  await loaded.driver.probe([]);
  expect(loaded.log.count("cuDeviceGetName") - before).toBe(2);
  expect(loaded.log.count("cuDevicePrimaryCtxRetain")).toBe(0);
  await loaded.driver.probe([1]);
  expect(loaded.log.count("cuMemGetInfo_v2")).toBe(1);
  expect(loaded.log.count("cuDevicePrimaryCtxRetain")).toBe(1);
  expect(loaded.driver.health).toEqual({ state: "usable" });
});

test("a driver that refuses a probe is unusable until it answers one", async () => {
  // The first two of these calls are the list of devices at the start.
  using loaded = await load("cuDeviceTotalMem_v2@3=100");
  await expect(loaded.driver.probe([])).rejects.toThrow("CUDA_ERROR_NO_DEVICE (100)");
  expect(loaded.driver.health).toEqual({
    state: "unusable",
    reason: expect.stringContaining("CUDA_ERROR_NO_DEVICE (100)"),
  });
  await loaded.driver.probe([]);
  expect(loaded.driver.health).toEqual({ state: "usable" });
});

test("a probe that meets a fault that only a new process mends finds the driver lost, for good", async () => {
  using loaded = await load("cuMemGetInfo_v2@1=999");
  await expect(loaded.driver.probe([0])).rejects.toThrow("restart the service");
  await loaded.driver.probe([]).catch(() => {});
  expect(loaded.driver.health).toEqual({
    state: "unusable",
    reason: expect.stringContaining("CUDA_ERROR_UNKNOWN (999)"),
    lost: true,
  });
});
