import { afterAll, beforeAll, expect, test } from "vitest";
import type { ExporterProcess } from "../../src/cli/exporter-process.js";
import { DriverError } from "../../src/core/driver.js";
import { RegistryError } from "../../src/core/errors.js";
import { IpcMemHandle } from "../../src/core/handle.js";
import { createCudaDriver } from "../../src/native/driver-selection.js";
import { startExporter } from "../helpers/cudashm.js";
import { emulatedCopy } from "../helpers/emulated-copy.js";

let exporter: ExporterProcess;
let handle: IpcMemHandle;

beforeAll(async () => {
  exporter = await startExporter(["--driver=emulated", "--bytes=5000"]);
  handle = new IpcMemHandle(Buffer.from(exporter.body.raw_handle.b64, "base64"));
});
afterAll(() => exporter[Symbol.asyncDispose]());

async function load(variables: Record<string, string> = {}, contextLingerMs = 0) {
  const copy = emulatedCopy(variables);
  const driver = createCudaDriver({ preference: "emulated", libraryPath: copy.path, contextLingerMs });
  await copy.withVariables(() => driver.devices());
  return { driver, log: copy.log, [Symbol.dispose]: () => copy[Symbol.dispose]() };
}

async function failure(promise: Promise<unknown>): Promise<DriverError> {
  const error = await promise.then(
    () => expect.fail("it succeeded"),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(DriverError);
  return error as DriverError;
}

test("shows the exporter's bytes and the exporter this process's", async () => {
  using loaded = await load();
  await exporter.write(4990, Buffer.from("0123456789"));
  await using mapping = await loaded.driver.open(0, handle);
  expect(mapping.byteSize).toBe(5000n);
  const into = Buffer.alloc(10);
  await mapping.read(4990n, into);
  expect(into.toString()).toBe("0123456789");
  await mapping.write(1n, Buffer.from("abc"));
  expect((await exporter.read(1, 3)).toString()).toBe("abc");
});

test("lists devices with no context on any of them", async () => {
  using loaded = await load({ CUDASHM_EMULATED_DEVICE_COUNT: "3" });
  const devices = await loaded.driver.devices();
  expect(devices.map(({ ordinal }) => ordinal)).toEqual([0, 1, 2]);
  expect(loaded.log.count("cuDevicePrimaryCtxRetain")).toBe(0);
  expect(loaded.driver.description?.driverVersion).toMatch(/^\d+\.\d$/);
});

test.each([
  [1, "CUDA_ERROR_INVALID_VALUE", /stale or corrupt/],
  [2, "CUDA_ERROR_OUT_OF_MEMORY", /used up/],
  [46, "CUDA_ERROR_DEVICE_UNAVAILABLE", /exclusive-process/],
  [201, "CUDA_ERROR_INVALID_CONTEXT", /PID namespace/],
  [205, "CUDA_ERROR_MAP_FAILED", /peer mapping/],
  [208, "CUDA_ERROR_ALREADY_MAPPED", /already mapped/],
  [217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", /peer access/],
  [400, "CUDA_ERROR_INVALID_HANDLE", /exporter is gone/],
  [711, "CUDA_ERROR_TOO_MANY_PEERS", /too many/],
  [800, "CUDA_ERROR_NOT_PERMITTED", /equal uids/],
  [801, "CUDA_ERROR_NOT_SUPPORTED", /no IPC/],
])("tells a refusal %i of an open by name, number and likely cause", async (code, name, hint) => {
  using loaded = await load({ CUDASHM_EMULATED_FAULTS: `cuIpcOpenMemHandle_v2=${code}` });
  const error = await failure(loaded.driver.open(0, handle));
  expect(error).toMatchObject({ call: "cuIpcOpenMemHandle", cudaCode: code, cudaError: name });
  expect(error.hint).toMatch(hint);
  expect(error.message).toBe(`cuIpcOpenMemHandle: ${name} (${code}): ${error.hint}`);
  expect(loaded.driver.health).toEqual({ state: "usable" });
  expect(loaded.log.count("cuDevicePrimaryCtxRelease_v2")).toBe(1);
});

test("closes what it opened when the driver cannot tell the size", async () => {
  using loaded = await load({ CUDASHM_EMULATED_FAULTS: "cuMemGetAddressRange_v2=1" });
  const error = await failure(loaded.driver.open(0, handle));
  expect(error.call).toBe("cuMemGetAddressRange");
  // The handle was just opened, so the same number says nothing about it here.
  expect(error.hint).not.toMatch(/handle|exporter/);
  expect(loaded.log.count("cuIpcOpenMemHandle_v2")).toBe(1);
  expect(loaded.log.count("cuIpcCloseMemHandle")).toBe(1);
});

test("refuses a handle that the emulated driver did not make, before any call of it", async () => {
  using loaded = await load();
  const error = await failure(loaded.driver.open(0, new IpcMemHandle(new Uint8Array(64).fill(1))));
  expect(error).toMatchObject({ cudaCode: 1, cudaError: "CUDA_ERROR_INVALID_VALUE" });
  expect(error.hint).toMatch(/not from the emulated driver.*real GPU/);
  expect(loaded.log.count("cuIpcOpenMemHandle_v2", 1)).toBe(0);
});

test("refuses a device that there is not, as the driver would", async () => {
  using loaded = await load();
  for (const deviceId of [1, -1, 2 ** 32, 0.5]) {
    expect(await failure(loaded.driver.open(deviceId, handle))).toMatchObject({ cudaCode: 101 });
  }
  expect(loaded.log.count("cuDevicePrimaryCtxRetain")).toBe(0);
});

test("opens with the older name of the function where the library has only that", async () => {
  using loaded = await load({ CUDASHM_EMULATED_HIDE: "cuIpcOpenMemHandle_v2,cuDeviceGetUuid_v2" });
  await using mapping = await loaded.driver.open(0, handle);
  expect(mapping.byteSize).toBe(5000n);
  expect(loaded.log.count("cuIpcOpenMemHandle")).toBe(1);
});

test("a refused close is told, and the next one closes", async () => {
  using loaded = await load({ CUDASHM_EMULATED_FAULTS: "cuIpcCloseMemHandle@1=1" });
  const mapping = await loaded.driver.open(0, handle);
  const error = await failure(mapping.close());
  expect(error).toMatchObject({ call: "cuIpcCloseMemHandle", cudaCode: 1 });
  expect(error.hint).not.toMatch(/handle|exporter/);
  expect(loaded.log.count("cuDevicePrimaryCtxRelease_v2")).toBe(0);
  await mapping.close();
  await mapping.close();
  expect(loaded.log.count("cuIpcCloseMemHandle")).toBe(1);
  expect(loaded.log.count("cuDevicePrimaryCtxRelease_v2")).toBe(1);
});

test("a sticky fault ends all use of the driver at once and asks for a restart", async () => {
  using loaded = await load({ CUDASHM_EMULATED_FAULTS: "cuMemcpyDtoH_v2@1=700" });
  const mapping = await loaded.driver.open(0, handle);
  const reason =
    /^the CUDA driver no longer works in this process since cuMemcpyDtoH: CUDA_ERROR_ILLEGAL_ADDRESS \(700\): restart the service$/;
  const error = await mapping.read(0n, new Uint8Array(1)).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(RegistryError);
  expect(error).toMatchObject({ code: "UNAVAILABLE", driver: { cudaCode: 700 } });
  expect((error as Error).message).toMatch(reason);
  expect(loaded.driver.health).toMatchObject({ state: "unusable", reason: expect.stringMatching(reason) });
  const opens = loaded.log.count("cuIpcOpenMemHandle_v2", 700);
  await expect(loaded.driver.open(0, handle)).rejects.toBe(error);
  await expect(loaded.driver.allocate(0, 1n)).rejects.toBe(error);
  await expect(loaded.driver.devices()).rejects.toBe(error);
  expect(loaded.log.count("cuIpcOpenMemHandle_v2", 700)).toBe(opens);
});

test("neither a mapping nor an error shows the device pointer or the handle", async () => {
  using loaded = await load();
  await using mapping = await loaded.driver.open(0, handle);
  const { inspect } = await import("node:util");
  const shown = inspect(mapping, { depth: 5, showHidden: false }) + JSON.stringify(Object.keys(mapping));
  expect(mapping.devicePointer).toBeGreaterThan(0n);
  expect(shown).not.toContain(String(mapping.devicePointer));
});
