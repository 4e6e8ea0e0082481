import { IpcMemHandle } from "../../src/core/handle.js";
import { createCudaDriver } from "../../src/native/driver-selection.js";
import { callLog } from "../helpers/call-log.js";
import { startExporter, testDriver } from "../helpers/cudashm.js";
import { FakeDriver } from "../helpers/fake-driver.js";
import { type DriverExporter, type DriverHarness, describeDriverContract } from "./driver-suite.js";

describeDriverContract("fake", async () => {
  const driver = new FakeDriver();
  return {
    driver,
    exactSizes: true,
    counts: () => ({ opens: driver.opens, closes: driver.closes }),
    startExporter: async (byteSize, deviceId) => fakeExporter(driver, byteSize, deviceId),
    [Symbol.asyncDispose]: async () => {},
  };
});

describeDriverContract(`addon on the ${testDriver} driver`, () =>
  testDriver === "cuda" ? createNativeHarness("cuda", {}) : createEmulatedHarness(),
);

function fakeExporter(driver: FakeDriver, byteSize: number, deviceId: number): DriverExporter {
  const allocation = driver.allocate(byteSize, deviceId);
  const leave = async () => allocation.free();
  return {
    deviceId,
    handle: allocation.handle,
    read: async (offset, size) => allocation.bytes.slice(offset, offset + size),
    write: async (offset, bytes) => allocation.bytes.set(bytes, offset),
    free: leave,
    die: leave,
    [Symbol.asyncDispose]: leave,
  };
}

async function createEmulatedHarness(): Promise<DriverHarness> {
  const log = callLog();
  const shared = { CUDASHM_EMULATED_DEVICE_COUNT: "2" };
  // The library reads its environment when it is initialised, which is at the first call of the driver.
  Object.assign(process.env, shared, log.variables);
  const harness = await createNativeHarness("emulated", shared);
  return {
    ...harness,
    exactSizes: true,
    counts: () => ({ opens: log.count("cuIpcOpenMemHandle_v2"), closes: log.count("cuIpcCloseMemHandle") }),
    [Symbol.asyncDispose]: async () => log[Symbol.dispose](),
  };
}

async function createNativeHarness(
  preference: "cuda" | "emulated",
  variables: Record<string, string>,
): Promise<DriverHarness> {
  return {
    driver: createCudaDriver({ preference, contextLingerMs: 0 }),
    exactSizes: false,
    counts: () => null,
    startExporter: (byteSize, deviceId) => processExporter(byteSize, deviceId, variables),
    [Symbol.asyncDispose]: async () => {},
  };
}

async function processExporter(
  byteSize: number,
  deviceId: number,
  variables: Record<string, string>,
): Promise<DriverExporter> {
  const exporter = await startExporter([`--bytes=${byteSize}`, `--device=${deviceId}`], variables);
  return {
    deviceId,
    handle: new IpcMemHandle(Buffer.from(exporter.body.raw_handle.b64, "base64")),
    read: (offset, size) => exporter.read(offset, size),
    write: (offset, bytes) => exporter.write(offset, Buffer.from(bytes)),
    free: () => exporter.free(),
    die: () => exporter[Symbol.asyncDispose](),
    [Symbol.asyncDispose]: () => exporter[Symbol.asyncDispose](),
  };
}
