import { expect, test } from "vitest";
import { RegistryError } from "../../src/core/errors.js";
import { RegionRegistry } from "../../src/core/registry.js";
import { traceRequests } from "../../src/tracing/request-spans.js";
import { TracedDriver } from "../../src/tracing/traced-driver.js";
import { crc32c } from "../helpers/crc32c.js";
import { createDeferred } from "../helpers/deferred.js";
import { driverError, FakeDriver } from "../helpers/fake-driver.js";
import { context, request, untilIdle } from "../helpers/registry-harness.js";
import { spans, tracer } from "./recorded-spans.js";

const begin = traceRequests(tracer)({ protocol: "grpc", service: "a", method: "b" });

function createTraced() {
  const driver = new FakeDriver();
  const traced = new TracedDriver(driver, tracer);
  return { driver, traced, registry: new RegionRegistry({ driver: traced }) };
}

/** Runs `work` as a request; answers its span's id. */
async function asRequest(work: () => Promise<unknown>, requestId = "only"): Promise<string | undefined> {
  const trace = begin({ requestId, header: () => undefined });
  await trace.run(work);
  trace.end(0);
  return spans().findLast(({ attributes }) => attributes["cudashm.request_id"] === requestId)?.id;
}

const ofDriver = () => spans().filter(({ name }) => name.startsWith("driver"));

test("the driver's open and close are under the requests that asked the registry", async () => {
  const { driver, registry } = createTraced();
  const { handle } = driver.allocate(64, 1);
  const register = await asRequest(() => registry.register(request("a", handle, { deviceId: 1n }), context));
  const unregister = await asRequest(() => registry.unregister("a", context));
  const attributes = { "cudashm.driver": "emulated", "cudashm.device": 1, "cudashm.outcome": "OK" };
  expect(ofDriver()).toMatchObject([
    { name: "driver open", parentId: register, attributes, isError: false },
    { name: "driver close", parentId: unregister, attributes, isError: false },
  ]);
  expect(driver.openMappings).toBe(0);
});

test("an open that two registers share is under the one that began it", async () => {
  const { driver, registry } = createTraced();
  const { handle } = driver.allocate(64);
  const gate = createDeferred();
  driver.beforeOpen = () => gate.promise;
  const first = asRequest(() => registry.register(request("a", handle), context), "first");
  const second = asRequest(() => registry.register(request("b", handle), context), "second");
  await untilIdle();
  gate.resolve();
  const [parentId] = await Promise.all([first, second]);
  expect(ofDriver()).toMatchObject([{ name: "driver open", parentId }]);
});

test("an open that waits for another request's close of the same handle is under its own request", async () => {
  const { driver, registry } = createTraced();
  const { handle } = driver.allocate(64);
  await registry.register(request("a", handle), context);
  const gate = createDeferred();
  driver.beforeClose = () => gate.promise;
  const unregister = asRequest(() => registry.unregister("a", context), "first");
  await untilIdle();
  const register = asRequest(() => registry.register(request("b", handle), context), "second");
  await untilIdle();
  gate.resolve();
  const [closer, opener] = await Promise.all([unregister, register]);
  expect(ofDriver().slice(1)).toMatchObject([
    { name: "driver close", parentId: closer },
    { name: "driver open", parentId: opener },
  ]);
});

test.each([
  ["a refusal of CUDA's", driverError(1, "CUDA_ERROR_INVALID_VALUE"), "CUDA_ERROR_INVALID_VALUE", false],
  ["a full queue", new RegistryError("RESOURCE_EXHAUSTED", "full"), "RESOURCE_EXHAUSTED", false],
  ["no driver", new RegistryError("UNAVAILABLE", "no library"), "UNAVAILABLE", true],
  ["a fault of ours", new Error("oops"), "INTERNAL", true],
])("an open that fails by %s is an error of ours only where it is", async (_, error, outcome, isError) => {
  const { driver, traced } = createTraced();
  driver.beforeOpen = () => {
    throw error;
  };
  await expect(traced.open(0, driver.allocate(64).handle)).rejects.toBe(error);
  expect(spans()).toMatchObject([{ attributes: { "cudashm.outcome": outcome }, isError }]);
  expect(spans()[0]?.attributes["error.type"]).toBe(isError ? outcome : undefined);
});

test("a close that the driver refuses is always an error", async () => {
  const { driver, traced } = createTraced();
  const mapping = await traced.open(0, driver.allocate(64).handle);
  driver.beforeClose = () => {
    throw driverError(1, "CUDA_ERROR_INVALID_VALUE");
  };
  await expect(mapping.close()).rejects.toMatchObject({ cudaCode: 1 });
  expect(spans().at(-1)).toMatchObject({
    attributes: { "cudashm.outcome": "CUDA_ERROR_INVALID_VALUE" },
    isError: true,
  });
});

test("everything else is the driver's own", async () => {
  const { driver, traced } = createTraced();
  driver.health = { state: "unusable", reason: "gone" };
  expect([traced.kind, traced.health]).toEqual(["emulated", driver.health]);
  expect(await traced.devices()).toHaveLength(2);
  const allocation = driver.allocate(8);
  const mapping = await traced.open(0, allocation.handle);
  expect(mapping).toMatchObject({ deviceId: 0, byteSize: 8n });
  expect(mapping.devicePointer).toBeGreaterThan(0n);
  await mapping.write(1n, Uint8Array.of(7));
  const read = new Uint8Array(2);
  await mapping.read(0n, read);
  expect([...read]).toEqual([0, 7]);
  expect(await mapping.checksum(1n, 1n, 5)).toBe(crc32c(Uint8Array.of(7), 5));
  expect(await traced.freeBytes(0)).toBeNull();
  Object.assign(driver, { freeBytes: async (deviceId: number) => BigInt(deviceId) });
  expect(await traced.freeBytes(1)).toBe(1n);
  await mapping[Symbol.asyncDispose]();
  expect(driver.openMappings).toBe(0);
});
