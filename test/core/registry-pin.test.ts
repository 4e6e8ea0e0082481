import { expect, test } from "vitest";
import type { RegionWindow } from "../../src/core/region.js";
import { createDeferred } from "../helpers/deferred.js";
import { driverError } from "../helpers/fake-driver.js";
import {
  context,
  createHarness,
  expectRejection,
  rejection,
  request,
  untilIdle,
} from "../helpers/registry-harness.js";

async function createPinHarness() {
  const harness = createHarness();
  const allocation = harness.driver.allocate(256);
  for (let i = 0; i < 256; i++) allocation.bytes[i] = i;
  await harness.registry.register(request("r", allocation.handle, { byteSize: 100n }), context);
  return { ...harness, allocation };
}

test("a pin of the whole region reads and writes what the exporter has", async () => {
  const { registry, allocation } = await createPinHarness();
  using pin = registry.pin("r", null, context);
  const into = new Uint8Array(4);
  await pin.read(96n, into);
  expect([pin.byteSize, [...into]]).toEqual([100n, [96, 97, 98, 99]]);
  await pin.write(10n, Uint8Array.of(201, 202));
  expect([...allocation.bytes.subarray(9, 13)]).toEqual([9, 201, 202, 12]);
});

test("offsets of a pinned window count from the window's start", async () => {
  const { registry, allocation } = await createPinHarness();
  using pin = registry.pin("r", { offset: 90n, byteSize: 10n }, context);
  const into = new Uint8Array(10);
  await pin.read(0n, into);
  expect([...into]).toEqual([90, 91, 92, 93, 94, 95, 96, 97, 98, 99]);
  await pin.write(9n, Uint8Array.of(255));
  expect([...allocation.bytes.subarray(98, 101)]).toEqual([98, 255, 100]);
});

test.each<RegionWindow>([
  { offset: 0n, byteSize: 101n },
  { offset: 100n, byteSize: 1n },
  { offset: 101n, byteSize: 0n },
  { offset: -1n, byteSize: 2n },
  { offset: 0n, byteSize: -1n },
  { offset: 2n ** 64n - 1n, byteSize: 2n },
  { offset: 1n, byteSize: 2n ** 64n - 1n },
])("a window of $byteSize at $offset of a region of 100 bytes is out of range", async (window) => {
  const { registry } = await createPinHarness();
  expect(() => registry.pin("r", window, context)).toThrow(
    expect.objectContaining({
      code: "OUT_OF_RANGE",
      message: `${window.byteSize} bytes at offset ${window.offset} are not within the 100 bytes of shared memory region 'r'`,
    }),
  );
  expect(registry.status("r").pins).toBe(0);
});

test.each<RegionWindow>([
  { offset: 0n, byteSize: 100n },
  { offset: 100n, byteSize: 0n },
  { offset: 99n, byteSize: 1n },
])("a window of $byteSize at $offset of a region of 100 bytes is fine", async (window) => {
  const { registry } = await createPinHarness();
  using pin = registry.pin("r", window, context);
  expect(pin.byteSize).toBe(window.byteSize);
});

test("a copy beyond the window is refused though the allocation is larger, and touches nothing", async () => {
  const { registry, allocation } = await createPinHarness();
  using pin = registry.pin("r", { offset: 50n, byteSize: 10n }, context);
  const text = "2 bytes at offset 9 are not within the 10 bytes of the pinned window";
  await expectRejection(pin.read(9n, new Uint8Array(2)), "OUT_OF_RANGE", text);
  await expectRejection(pin.write(9n, new Uint8Array(2)), "OUT_OF_RANGE", text);
  await expectRejection(pin.write(-1n, new Uint8Array(2)), "OUT_OF_RANGE", /^2 bytes at offset -1 /);
  expect([...allocation.bytes.subarray(58, 62)]).toEqual([58, 59, 60, 61]);
});

test("a region that does not exist cannot be pinned", () => {
  const { registry } = createHarness();
  expect(() => registry.pin("x", null, context)).toThrow(
    expect.objectContaining({
      code: "NOT_FOUND",
      message: "Unable to find cuda shared memory region: 'x'",
    }),
  );
});

test("status tells how many pins there are; the revision is left alone", async () => {
  const { registry } = await createPinHarness();
  const { revision } = registry;
  const [a, b] = [registry.pin("r", null, context), registry.pin("r", null, context)];
  expect([registry.status("r").pins, registry.statuses()[0]?.pins]).toEqual([2, 2]);
  a.release();
  a.release();
  expect([registry.status("r").pins, registry.statuses()[0]?.pins]).toEqual([1, 1]);
  b[Symbol.dispose]();
  expect([registry.status("r").pins, registry.revision]).toEqual([0, revision]);
});

test("a released pin copies nothing more", async () => {
  const { registry } = await createPinHarness();
  const pin = registry.pin("r", null, context);
  pin.release();
  const text = "the pin was released; pin the region again";
  await expectRejection(pin.read(0n, new Uint8Array(1)), "FAILED_PRECONDITION", text);
  await expectRejection(pin.write(0n, new Uint8Array(1)), "FAILED_PRECONDITION", text);
});

test("unregister of a pinned region is accepted at once and carried out with the last release", async () => {
  const { driver, registry, kinds, names } = await createPinHarness();
  const first = registry.pin("r", null, context);
  await registry.unregister("r", context);
  await registry.unregister("r", context);
  expect([registry.status("r").state, registry.status("r").pins, names()]).toEqual(["draining", 1, ["r"]]);
  await expectRejection(
    registry.register(request("r", driver.allocate(64).handle), context),
    "ALREADY_EXISTS",
    "shared memory region 'r' already in manager",
  );

  const second = registry.pin("r", null, context);
  first.release();
  await untilIdle();
  expect([driver.closes, registry.status("r").pins]).toEqual([0, 1]);
  const into = new Uint8Array(1);
  await second.read(7n, into);
  expect(into[0]).toBe(7);

  second.release();
  expect(() => registry.pin("r", null, context)).toThrow("Unable to find cuda shared memory region: 'r'");
  await untilIdle();
  expect([driver.closes, registry.mappings, names()]).toEqual([1, 0, []]);
  expect(kinds()).toEqual(["registered r", "draining r", "unregistered r"]);
});

test("a deferred close tells the observers of the unregister that asked for it", async () => {
  const { registry, changes } = await createPinHarness();
  const pin = registry.pin("r", null, context);
  await registry.unregister("r", { ...context, requestId: "who asked" });
  pin.release();
  await untilIdle();
  expect(changes.slice(1).map(({ kind, context }) => [kind, context.requestId])).toEqual([
    ["draining", "who asked"],
    ["unregistered", "who asked"],
  ]);
});

test("a deferred close that fails is told to the observers and tried again by the next unregister", async () => {
  const { driver, registry, changes } = await createPinHarness();
  const pin = registry.pin("r", null, context);
  await registry.unregister("r", context);
  driver.beforeClose = () => {
    throw driverError(1, "CUDA_ERROR_INVALID_VALUE");
  };
  pin.release();
  await untilIdle();
  expect(changes.at(-1)).toMatchObject({
    kind: "close_failed",
    region: { name: "r", state: "close_failed" },
  });
  driver.beforeClose = undefined;
  await registry.unregister("r", context);
  expect([driver.closes, registry.mappings]).toEqual([1, 0]);
});

test("a pin of one life of a name never holds or ends the next", async () => {
  const { driver, registry, allocation } = await createPinHarness();
  const old = registry.pin("r", null, context);
  old.release();
  await registry.unregister("r", context);
  await registry.register(request("r", allocation.handle), context);
  const pin = registry.pin("r", null, context);
  await registry.unregister("r", context);
  old.release();
  await untilIdle();
  expect([registry.status("r").state, registry.status("r").pins, driver.closes]).toEqual(["draining", 1, 1]);
  pin.release();
  await untilIdle();
  expect([driver.closes, registry.statuses()]).toEqual([2, []]);
});

test("a copy under way keeps the memory though its pin is released meanwhile", async () => {
  const { driver, registry } = await createPinHarness();
  const gate = createDeferred();
  driver.beforeCopy = () => gate.promise;
  const pin = registry.pin("r", null, context);
  const into = new Uint8Array(1);
  const copy = pin.read(3n, into);
  await registry.unregister("r", context);
  pin.release();
  await untilIdle();
  expect([registry.status("r").pins, driver.closeCalls]).toEqual([1, 0]);
  gate.resolve();
  await copy;
  await untilIdle();
  expect([into[0], driver.closes, registry.statuses()]).toEqual([3, 1, []]);
});

test("the memory is let go when the last of several copies ends, also where one fails", async () => {
  const { driver, registry } = await createPinHarness();
  const gates = [createDeferred(), createDeferred()];
  let copies = 0;
  driver.beforeCopy = () => gates[copies++]?.promise;
  const pin = registry.pin("r", null, context);
  const read = pin.read(0n, new Uint8Array(1));
  const write = rejection(pin.write(0n, new Uint8Array(1)));
  await registry.unregister("r", context);
  pin.release();
  gates[1]?.reject(driverError(700, "CUDA_ERROR_ILLEGAL_ADDRESS", "cuMemcpyHtoD_v2"));
  expect(await write).toMatchObject({
    code: "INTERNAL",
    message:
      "failed to copy the memory of shared memory region 'r': CUDA_ERROR_ILLEGAL_ADDRESS (700): hint for 700",
    driver: { cudaCode: 700 },
  });
  expect(driver.closeCalls).toBe(0);
  gates[0]?.resolve();
  await read;
  await untilIdle();
  expect(driver.closes).toBe(1);
});

test("10,000 races of a release against an unregister close every region once", async () => {
  const { driver, registry } = createHarness();
  const { handle } = driver.allocate(64);
  for (let i = 0; i < 10_000; i++) {
    await registry.register(request("r", handle), context);
    const pin = registry.pin("r", null, context);
    // The release falls on each of the first turns of the microtask queue after the unregister, or before it.
    const turns = i % 8;
    const unregister = turns === 0 ? undefined : registry.unregister("r", context);
    for (let turn = 1; turn < turns; turn++) await null;
    pin.release();
    await (unregister ?? registry.unregister("r", context));
    while (registry.mappings > 0 || registry.statuses().length > 0) await untilIdle();
  }
  expect([driver.opens, driver.closes, driver.closeCalls, registry.mappings]).toEqual([
    10_000, 10_000, 10_000, 0,
  ]);
});
