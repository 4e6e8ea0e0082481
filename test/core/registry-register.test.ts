import { expect, test } from "vitest";
import type { ErrorCode } from "../../src/core/errors.js";
import { RegistryError } from "../../src/core/errors.js";
import { createDeferred } from "../helpers/deferred.js";
import { FakeClock } from "../helpers/fake-clock.js";
import { driverError } from "../helpers/fake-driver.js";
import { regionStatus } from "../helpers/region-status.js";
import {
  context,
  createHarness,
  expectRejection,
  rejection,
  request,
  untilIdle,
} from "../helpers/registry-harness.js";

const invalid = (name: string, problem: string) =>
  `failed to register shared memory region '${name}': invalid args: ${problem}`;

test("a registered region is listed until it is unregistered", async () => {
  const { driver, registry } = createHarness({ clock: new FakeClock(1234) });
  const { handle } = driver.allocate(4096, 1);

  const region = await registry.register(request("r1", handle, { deviceId: 1n }), context);

  const expected = regionStatus({
    name: "r1",
    deviceId: 1,
    deviceUuid: "GPU-00000000-0000-0000-0000-000000000001",
    allocationByteSize: 4096n,
    protocol: "library",
    registeredAt: 1234,
    handle,
  });
  expect(region).toEqual(expected);
  expect(registry.statuses()).toEqual([region]);
  expect(registry.status("r1")).toEqual(region);
  expect([registry.mappings, driver.openMappings, registry.revision]).toEqual([1, 1, 1n]);

  await registry.unregister("r1", context);
  expect(registry.statuses()).toEqual([]);
  expect([registry.mappings, driver.openMappings, registry.revision]).toEqual([0, 0, 2n]);
});

test("the name is checked first, then whether it is free, then the size, then the device", async () => {
  const { driver, registry } = createHarness();
  const { handle } = driver.allocate(64);
  await registry.register(request("taken", handle), context);
  const wrong = { byteSize: 0n, deviceId: 99n };

  await expectRejection(
    registry.register(request("..", handle, wrong), context),
    "INVALID_ARGUMENT",
    invalid("..", "'..' is not allowed as a region name: URL parsers fold it away"),
  );
  await expectRejection(
    registry.register(request("taken", handle, wrong), context),
    "ALREADY_EXISTS",
    "shared memory region 'taken' already in manager",
  );
  await expectRejection(
    registry.register(request("r", handle, wrong), context),
    "INVALID_ARGUMENT",
    invalid("r", "byte_size must be at least 1"),
  );
  await expectRejection(
    registry.register(request("r", handle, { ...wrong, byteSize: 65n }), context),
    "INVALID_ARGUMENT",
    invalid("r", "device_id 99 is no device of this service; its devices: 0 (Fake GPU 0), 1 (Fake GPU 1)"),
  );
  await expectRejection(
    registry.register(request("r", handle, { byteSize: 65n }), context),
    "INVALID_ARGUMENT",
    invalid("r", "byte_size 65 exceeds the 64 bytes of the allocation"),
  );
  expect([registry.mappings, driver.openMappings, driver.redundantCloses]).toEqual([1, 1, 0]);
});

test("an empty name is refused as the arguments of a register are", async () => {
  const { driver, registry } = createHarness();
  await expectRejection(
    registry.register(request("", driver.allocate(64).handle), context),
    "INVALID_ARGUMENT",
    invalid("", "the region name is empty"),
  );
});

test.each([-1n, 2n, 99n, 2n ** 31n, 2n ** 32n, 2n ** 63n - 1n, 2n ** 64n - 1n])(
  "device_id %d is refused before the driver is asked to open",
  async (deviceId) => {
    const { driver, registry } = createHarness();
    const { handle } = driver.allocate(64);
    await expectRejection(
      registry.register(request("r", handle, { deviceId }), context),
      "INVALID_ARGUMENT",
      new RegExp(`invalid args: device_id ${deviceId} is no device of this service`),
    );
    expect(driver.openCalls).toBe(0);
    await registry.register(request("r", handle), context);
  },
);

test.each([0n, -1n, 2n ** 64n])(
  "byte_size %d is refused before the driver is asked anything",
  async (byteSize) => {
    const { driver, registry } = createHarness();
    const { handle } = driver.allocate(64);
    driver.devicesError = new Error("must not be asked");
    await expectRejection(
      registry.register(request("r", handle, { byteSize }), context),
      "INVALID_ARGUMENT",
      /^failed to register shared memory region 'r': invalid args: byte_size /,
    );
  },
);

test.each([2n ** 53n + 1n, 2n ** 64n - 1n, 4097n])(
  "byte_size %d over the allocation is refused, and the mapping closed",
  async (byteSize) => {
    const { driver, registry, changes } = createHarness();
    const { handle } = driver.allocate(4096);
    await expectRejection(
      registry.register(request("r", handle, { byteSize }), context),
      "INVALID_ARGUMENT",
      invalid("r", `byte_size ${byteSize} exceeds the 4096 bytes of the allocation`),
    );
    expect([driver.opens, driver.closes, registry.mappings]).toEqual([1, 1, 0]);
    expect(changes).toEqual([]);
    expect(registry.revision).toBe(0n);
  },
);

test("byte_size may be the whole allocation", async () => {
  const { driver, registry } = createHarness();
  const region = await registry.register(
    request("r", driver.allocate(4096).handle, { byteSize: 4096n }),
    context,
  );
  expect(region.byteSize).toBe(4096n);
});

test("10,000 refused registers leave no mapping open", async () => {
  let refused = 0;
  const { driver, registry, names } = createHarness();
  const { handle } = driver.allocate(64);
  for (let i = 0; i < 10_000; i++) {
    await registry.register(request(`r${i % 7}`, handle, { byteSize: 65n }), context).catch(() => refused++);
  }
  expect(refused).toBe(10_000);
  expect([driver.opens, driver.closes, registry.mappings]).toEqual([10_000, 10_000, 0]);
  expect(names()).toEqual([]);
});

test("a handle that the driver refuses is the client's fault, with the driver's words", async () => {
  const { driver, registry } = createHarness();
  const allocation = driver.allocate(64);
  allocation.free();
  const error = await expectRejection(
    registry.register(request("r", allocation.handle), context),
    "INVALID_ARGUMENT",
    invalid("r", "CUDA_ERROR_INVALID_VALUE (1): hint for 1"),
  );
  expect(error.driver).toEqual({ cudaError: "CUDA_ERROR_INVALID_VALUE", cudaCode: 1, hint: "hint for 1" });
  expect(registry.mappings).toBe(0);
});

const passedOn: [ErrorCode, string][] = [
  ["UNAVAILABLE", "no usable CUDA driver: libcuda.so.1 is missing"],
  ["RESOURCE_EXHAUSTED", "1024 opens wait on device 0"],
];

test.each(passedOn)("%s from the driver's open keeps its code and gets the name", async (code, message) => {
  const { driver, registry } = createHarness();
  driver.beforeOpen = () => {
    throw new RegistryError(code, message);
  };
  await expectRejection(
    registry.register(request("r", driver.allocate(64).handle), context),
    code,
    `failed to register shared memory region 'r': ${message}`,
  );
  driver.beforeOpen = undefined;
  await registry.register(request("r", driver.allocate(64).handle), context);
});

test("without a usable driver a register is UNAVAILABLE with the driver's reason, whatever the device", async () => {
  const { driver, registry } = createHarness();
  driver.devicesError = new RegistryError("UNAVAILABLE", "libcuda.so.1 was not found");
  await expectRejection(
    registry.register(request("r", driver.allocate(64).handle, { deviceId: 99n }), context),
    "UNAVAILABLE",
    "failed to register shared memory region 'r': libcuda.so.1 was not found",
  );
});

test("a driver that was lost refuses a register that would share a mapping, for which it is not asked", async () => {
  const { driver, registry, names } = createHarness();
  const { handle } = driver.allocate(64);
  await registry.register(request("r", handle), context);
  driver.health = { state: "unusable", reason: "the driver no longer works: restart the service" };
  await expectRejection(
    registry.register(request("s", handle), context),
    "UNAVAILABLE",
    "failed to register shared memory region 's': the driver no longer works: restart the service",
  );
  expect([driver.openCalls, registry.mappings, names()]).toEqual([1, 1, ["r"]]);
  await registry.unregister("r", context);
  expect(registry.mappings).toBe(0);
});

test("a driver that refuses to list its devices is no fault of the client", async () => {
  const { driver, registry } = createHarness();
  driver.devicesError = driverError(2, "CUDA_ERROR_OUT_OF_MEMORY", "cuDeviceGetName");
  const error = await expectRejection(
    registry.register(request("r", driver.allocate(64).handle), context),
    "UNAVAILABLE",
    "failed to register shared memory region 'r': the CUDA driver does not list its devices: CUDA_ERROR_OUT_OF_MEMORY (2): hint for 2",
  );
  expect(error.driver?.cudaCode).toBe(2);
});

test("a fault that only a new process mends makes a register UNAVAILABLE", async () => {
  const { driver, registry } = createHarness();
  driver.beforeOpen = () => {
    throw driverError(700, "CUDA_ERROR_ILLEGAL_ADDRESS");
  };
  const error = await expectRejection(
    registry.register(request("r", driver.allocate(64).handle), context),
    "UNAVAILABLE",
    "failed to register shared memory region 'r': CUDA_ERROR_ILLEGAL_ADDRESS (700): hint for 700; the service has to be restarted",
  );
  expect(error.driver?.cudaCode).toBe(700);
});

test("anything else from the driver is a fault of ours: a fixed text, the cause kept for the log", async () => {
  const { driver, registry } = createHarness();
  const cause = new TypeError("at 0x7f0000000000");
  driver.beforeOpen = () => {
    throw cause;
  };
  const error = await expectRejection(
    registry.register(request("r", driver.allocate(64).handle), context),
    "INTERNAL",
    "failed to register shared memory region 'r': internal error; the cause is in the service's log",
  );
  expect(error.cause).toBe(cause);
});

test("of 10 concurrent registers of one name, one succeeds and nine find it taken", async () => {
  const { driver, registry, names } = createHarness();
  const results = await Promise.allSettled(
    Array.from({ length: 10 }, () => registry.register(request("r", driver.allocate(64).handle), context)),
  );
  expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  const codes = results.flatMap((result) => (result.status === "rejected" ? [result.reason.code] : []));
  expect(codes).toEqual(Array(9).fill("ALREADY_EXISTS"));
  expect([driver.openCalls, registry.mappings, names()]).toEqual([1, 1, ["r"]]);
});

test("while a register is pending its name is taken and invisible, and nobody else waits", async () => {
  const { driver, registry, names } = createHarness();
  const slow = driver.allocate(64);
  const gate = createDeferred();
  driver.beforeOpen = (_, handle) => (handle === slow.handle ? gate.promise : undefined);

  const pending = registry.register(request("slow", slow.handle), context);
  await untilIdle();
  expect(names()).toEqual([]);
  expect(() => registry.status("slow")).toThrow("Unable to find cuda shared memory region: 'slow'");
  expect(() => registry.pin("slow", null, context)).toThrow(
    "Unable to find cuda shared memory region: 'slow'",
  );
  await expectRejection(
    registry.register(request("slow", driver.allocate(64).handle), context),
    "ALREADY_EXISTS",
    "shared memory region 'slow' already in manager",
  );
  await registry.register(request("quick", driver.allocate(64).handle), context);
  await registry.unregister("quick", context);
  await registry.register(request("quick", driver.allocate(64).handle), context);
  expect(names()).toEqual(["quick"]);

  gate.resolve();
  await pending;
  expect(names()).toEqual(["quick", "slow"]);
});

test("a name is free again as soon as its register failed", async () => {
  const { driver, registry } = createHarness();
  const stale = driver.allocate(64);
  stale.free();
  await rejection(registry.register(request("r", stale.handle), context));
  await registry.register(request("r", driver.allocate(64).handle), context);
});

test("two names on one handle share one mapping, which the last of them closes", async () => {
  const { driver, registry } = createHarness();
  const { handle, bytes } = driver.allocate(64);
  bytes[5] = 42;
  await Promise.all([
    registry.register(request("a", handle), context),
    registry.register(request("b", handle, { byteSize: 32n }), context),
  ]);
  expect([driver.opens, registry.mappings]).toEqual([1, 1]);

  await registry.unregister("a", context);
  expect([driver.closes, registry.mappings]).toEqual([0, 1]);
  using pin = registry.pin("b", null, context);
  const read = new Uint8Array(1);
  await pin.read(5n, read);
  expect(read[0]).toBe(42);
  pin.release();

  await registry.unregister("b", context);
  expect([driver.closes, registry.mappings]).toEqual([1, 0]);
});

test("the same handle on two devices is two mappings", async () => {
  const { driver, registry } = createHarness();
  const { handle } = driver.allocate(64);
  await registry.register(request("a", handle, { deviceId: 0n }), context);
  await registry.register(request("b", handle, { deviceId: 1n }), context);
  expect([driver.opens, registry.mappings]).toEqual([2, 2]);
});

test("all who share an open that fails are refused, and the next register asks the driver again", async () => {
  const { driver, registry } = createHarness();
  const { handle } = driver.allocate(64);
  const gate = createDeferred();
  driver.beforeOpen = () => gate.promise;
  const both = ["a", "b"].map((name) => rejection(registry.register(request(name, handle), context)));
  await untilIdle();
  gate.reject(driverError(205, "CUDA_ERROR_MAP_FAILED"));
  const errors = await Promise.all(both);
  expect(errors.map(({ message }) => message)).toEqual(
    ["a", "b"].map((name) => invalid(name, "CUDA_ERROR_MAP_FAILED (205): hint for 205")),
  );
  driver.beforeOpen = undefined;
  await registry.register(request("a", handle), context);
  expect([driver.openCalls, registry.mappings]).toEqual([2, 1]);
});

test("one handle registered and unregistered 1,000 times is opened and closed 1,000 times", async () => {
  const { driver, registry } = createHarness();
  const { handle } = driver.allocate(64);
  for (let i = 0; i < 1000; i++) {
    await registry.register(request("r", handle), context);
    await registry.unregister("r", context);
  }
  expect([driver.opens, driver.closes, registry.mappings, registry.revision]).toEqual([1000, 1000, 0, 2000n]);
});

test("an open of a handle waits for the close of its last mapping", async () => {
  const { driver, registry } = createHarness();
  const { handle } = driver.allocate(64);
  await registry.register(request("a", handle), context);
  const gate = createDeferred();
  driver.beforeClose = () => gate.promise;
  const leaving = registry.unregister("a", context);
  const joining = registry.register(request("b", handle), context);
  await untilIdle();
  expect([driver.openCalls, driver.closeCalls]).toEqual([1, 1]);
  gate.resolve();
  await Promise.all([leaving, joining]);
  expect([driver.opens, driver.closes, registry.mappings]).toEqual([2, 1, 1]);
});

test("names that objects have as members are ordinary names", async () => {
  const { driver, registry, names } = createHarness();
  const odd = ["__proto__", "constructor", "hasOwnProperty", "toString"];
  for (const name of odd) {
    await registry.unregister(name, context);
    expect(() => registry.status(name)).toThrow(`Unable to find cuda shared memory region: '${name}'`);
    await registry.register(request(name, driver.allocate(64).handle), context);
    expect(registry.status(name).name).toBe(name);
  }
  expect(names()).toEqual(odd);
});

test("composed and decomposed spellings of a name are two regions", async () => {
  const { driver, registry, names } = createHarness();
  await registry.register(request("caf\u00e9", driver.allocate(64).handle), context);
  await registry.register(request("cafe\u0301", driver.allocate(64).handle), context);
  expect(names()).toEqual(["cafe\u0301", "caf\u00e9"]);
});

test("no error and no status shows a handle or a device pointer", async () => {
  const { driver, registry } = createHarness();
  const { handle } = driver.allocate(64);
  const { inspect } = await import("node:util");
  const region = await registry.register(request("r", handle), context);
  const taken = await rejection(registry.register(request("r", handle), context));
  const tooLarge = await rejection(registry.register(request("s", handle, { byteSize: 65n }), context));
  const shown = inspect([region, registry, taken, tooLarge], { depth: 9, showHidden: true });
  const bytes = Buffer.from(handle.exposeBytes());
  expect(shown).not.toContain("devicePointer");
  expect(shown).not.toContain(bytes.toString("hex").slice(0, 16));
  expect(shown).not.toContain(bytes.toString("base64").slice(0, 16));
});
