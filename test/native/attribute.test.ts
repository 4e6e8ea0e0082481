import { expect, test } from "vitest";
import { createCudaDriver } from "../../src/native/driver-selection.js";
import { emulatedCopy } from "../helpers/emulated-copy.js";

async function load(variables: Record<string, string> = {}) {
  const copy = emulatedCopy(variables);
  const driver = createCudaDriver({ preference: "emulated", libraryPath: copy.path, contextLingerMs: 0 });
  await copy.withVariables(() => driver.devices());
  return { driver, log: copy.log, [Symbol.dispose]: () => copy[Symbol.dispose]() };
}

const busId = 33;

test("an attribute is told of its device, with no context on any", async () => {
  using loaded = await load({ CUDASHM_EMULATED_DEVICE_COUNT: "2" });
  expect(await loaded.driver.attribute(0, busId)).toBe(1);
  expect(await loaded.driver.attribute(1, busId)).toBe(2);
  expect(loaded.log.count("cuDevicePrimaryCtxRetain")).toBe(0);
});

test("an attribute that the driver does not know is null, any other refusal an error", async () => {
  using loaded = await load({
    CUDASHM_EMULATED_FAULTS: "cuDeviceGetAttribute@1=1,cuDeviceGetAttribute@2=101",
  });
  expect(await loaded.driver.attribute(0, busId)).toBeNull();
  await expect(loaded.driver.attribute(0, busId)).rejects.toMatchObject({
    call: "cuDeviceGetAttribute",
    cudaCode: 101,
  });
  expect(await loaded.driver.attribute(0, busId)).toBe(1);
});

test("a device that there is not has no attributes", async () => {
  using loaded = await load();
  await expect(loaded.driver.attribute(1, busId)).rejects.toMatchObject({ cudaCode: 101 });
  expect(loaded.log.count("cuDeviceGetAttribute")).toBe(0);
});
