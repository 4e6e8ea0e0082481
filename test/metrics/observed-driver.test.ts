import { expect, test } from "vitest";
import { RegistryError } from "../../src/core/errors.js";
import { ObservedDriver } from "../../src/metrics/observed-driver.js";
import { driverError, FakeDriver } from "../helpers/fake-driver.js";

function observed() {
  const told: unknown[][] = [];
  const driver = new FakeDriver();
  const observer = new ObservedDriver(driver, {
    ended: (call, deviceId, ms) => told.push(["ended", call, deviceId, ms >= 0]),
    refused: (call, cudaError) => told.push(["refused", call, cudaError]),
    mapped: (deviceId, byteSize, by) => told.push(["mapped", deviceId, byteSize, by]),
  });
  return { driver, observer, told };
}

test("an open and its close are told with device and size, and the mapping works as the driver's own", async () => {
  const { driver, observer, told } = observed();
  const allocation = driver.allocate(64, 1);
  const mapping = await observer.open(1, allocation.handle);
  expect(mapping).toMatchObject({ deviceId: 1, byteSize: 64n });
  expect(mapping.devicePointer).toBeGreaterThan(0n);
  await mapping.write(3n, Uint8Array.of(7, 8));
  expect([...allocation.bytes.subarray(2, 6)]).toEqual([0, 7, 8, 0]);
  const read = new Uint8Array(2);
  await mapping.read(3n, read);
  expect([...read]).toEqual([7, 8]);
  expect(await mapping.checksum(4n, 1n, await mapping.checksum(0n, 4n))).toBe(await mapping.checksum(0n, 5n));
  await mapping.close();
  expect(driver.openMappings).toBe(0);
  expect(told).toEqual([
    ["ended", "open", 1, true],
    ["mapped", 1, 64n, 1],
    ["ended", "close", 1, true],
    ["mapped", 1, 64n, -1],
  ]);
});

test("free memory is what the driver says, and unknown where it does not say", async () => {
  const { driver, observer } = observed();
  expect(await observer.freeBytes(1)).toBeNull();
  Object.assign(driver, { freeBytes: async (deviceId: number) => BigInt(deviceId) });
  expect(await observer.freeBytes(1)).toBe(1n);
});

test("what is closed twice was mapped once", async () => {
  const { driver, observer, told } = observed();
  const mapping = await observer.open(0, driver.allocate(64).handle);
  await mapping.close();
  await mapping[Symbol.asyncDispose]();
  expect(told.filter(([what]) => what === "mapped").map(([, , , by]) => by)).toEqual([1, -1]);
});

test("a refused open, close and copy are told by CUDA's name, and refused to the caller as they were", async () => {
  const { driver, observer, told } = observed();
  const allocation = driver.allocate(64);
  driver.beforeOpen = () => {
    throw driverError(201, "CUDA_ERROR_INVALID_CONTEXT");
  };
  await expect(observer.open(0, allocation.handle)).rejects.toMatchObject({ cudaCode: 201 });
  driver.beforeOpen = undefined;
  const mapping = await observer.open(0, allocation.handle);
  driver.beforeCopy = () => {
    throw new RegistryError("UNAVAILABLE", "lost", {
      driver: { cudaError: "CUDA_ERROR_ILLEGAL_ADDRESS", cudaCode: 700, hint: "" },
    });
  };
  await expect(mapping.read(0n, new Uint8Array(1))).rejects.toThrow("lost");
  await expect(mapping.checksum(0n, 1n)).rejects.toThrow("lost");
  driver.beforeClose = () => {
    throw driverError(1, "CUDA_ERROR_INVALID_VALUE");
  };
  await expect(mapping.close()).rejects.toMatchObject({ cudaCode: 1 });
  expect(told).toEqual([
    ["refused", "open", "CUDA_ERROR_INVALID_CONTEXT"],
    ["ended", "open", 0, true],
    ["ended", "open", 0, true],
    ["mapped", 0, 64n, 1],
    ["refused", "copy", "CUDA_ERROR_ILLEGAL_ADDRESS"],
    ["refused", "copy", "CUDA_ERROR_ILLEGAL_ADDRESS"],
    ["refused", "close", "CUDA_ERROR_INVALID_VALUE"],
    ["ended", "close", 0, true],
  ]);
});

test("a refusal that is not CUDA's is no error of CUDA's", async () => {
  const { driver, observer, told } = observed();
  driver.devicesError = new RegistryError("UNAVAILABLE", "no library");
  await expect(observer.devices()).rejects.toThrow("no library");
  expect(told).toEqual([]);
});

test("kind and health are the driver's", () => {
  const { driver, observer } = observed();
  driver.health = { state: "unusable", reason: "gone" };
  expect([observer.kind, observer.health]).toEqual(["emulated", { state: "unusable", reason: "gone" }]);
});
