import { expect, test } from "vitest";
import { RegistryError } from "../../src/core/errors.js";
import { createDeferred } from "../helpers/deferred.js";
import { driverError } from "../helpers/fake-driver.js";
import {
  context,
  contextWith,
  createHarness,
  expectRejection,
  rejection,
  request,
  untilIdle,
} from "../helpers/registry-harness.js";

function createSlowHarness() {
  const harness = createHarness();
  const gate = createDeferred();
  harness.driver.beforeOpen = () => gate.promise;
  const { handle } = harness.driver.allocate(64);
  return { ...harness, gate, handle };
}

test("an aborted register is answered at once; the open that finishes later is undone", async () => {
  const { driver, registry, changes, gate, handle } = createSlowHarness();
  const client = new AbortController();
  const register = registry.register(request("r", handle), contextWith(client.signal));
  await untilIdle();
  client.abort();
  await expectRejection(register, "CANCELLED", "the call was cancelled");
  expect([driver.openCalls, driver.opens]).toEqual([1, 0]);

  gate.resolve();
  await registry.unregister("r", context);
  expect([driver.opens, driver.closes, registry.mappings]).toEqual([1, 1, 0]);
  expect([changes, registry.revision, registry.statuses()]).toEqual([[], 0n, []]);
});

test("a signal that is aborted already opens nothing", async () => {
  const { driver, registry, handle } = createSlowHarness();
  await expectRejection(
    registry.register(request("r", handle), contextWith(AbortSignal.abort())),
    "CANCELLED",
    "the call was cancelled",
  );
  await untilIdle();
  expect(driver.openCalls).toBe(0);
});

test("an abort while the devices are being listed opens nothing", async () => {
  const { driver, registry, handle } = createSlowHarness();
  const client = new AbortController();
  const register = registry.register(request("r", handle), contextWith(client.signal));
  client.abort();
  await rejection(register);
  await untilIdle();
  expect(driver.openCalls).toBe(0);
});

test("what the abort was for is what the call is answered", async () => {
  const { registry, handle } = createSlowHarness();
  const answers = async (reason: unknown) => {
    const client = new AbortController();
    const register = registry.register(request(`r${String(reason)}`, handle), contextWith(client.signal));
    await untilIdle();
    client.abort(reason);
    const { code, message } = await rejection(register);
    return `${code}: ${message}`;
  };
  expect(await answers(new RegistryError("DEADLINE_EXCEEDED", "5 s are over"))).toBe(
    "DEADLINE_EXCEEDED: 5 s are over",
  );
  expect(await answers(new DOMException("", "TimeoutError"))).toBe(
    "DEADLINE_EXCEEDED: the deadline passed before the call was done",
  );
  expect(await answers("any other")).toBe("CANCELLED: the call was cancelled");
  registry.refuseRegisters();
  expect((await rejection(registry.register(request("late", handle), context))).code).toBe("UNAVAILABLE");
});

test("an abort while the service stops is UNAVAILABLE", async () => {
  const { registry, handle } = createSlowHarness();
  const shutdown = new AbortController();
  const register = registry.register(request("r", handle), contextWith(shutdown.signal));
  await untilIdle();
  registry.refuseRegisters();
  shutdown.abort();
  await expectRejection(register, "UNAVAILABLE", "Server exiting");
});

test("an abort never takes the open away from another register that shares it", async () => {
  const { driver, registry, names, gate, handle } = createSlowHarness();
  const client = new AbortController();
  const leaving = registry.register(request("leaving", handle), contextWith(client.signal));
  const staying = registry.register(request("staying", handle), context);
  await untilIdle();
  client.abort();
  await rejection(leaving);
  gate.resolve();
  await staying;
  await registry.unregister("leaving", context);
  expect([driver.opens, driver.closes, registry.mappings, names()]).toEqual([1, 0, 1, ["staying"]]);
});

test("an open whose first register was aborted still serves one that comes later", async () => {
  const { driver, registry, gate, handle } = createSlowHarness();
  const client = new AbortController();
  const leaving = registry.register(request("leaving", handle), contextWith(client.signal));
  await untilIdle();
  client.abort();
  await rejection(leaving);
  const staying = registry.register(request("staying", handle), context);
  await untilIdle();
  gate.resolve();
  await staying;
  await untilIdle();
  expect([driver.opens, driver.closes, registry.mappings]).toEqual([1, 0, 1]);
});

test("a register of a name that is being rolled back waits for that, then takes it; a second finds it taken", async () => {
  const { driver, registry, names, gate, handle } = createSlowHarness();
  const client = new AbortController();
  const aborted = registry.register(request("r", handle), contextWith(client.signal));
  await untilIdle();
  client.abort();
  await rejection(aborted);

  const other = driver.allocate(64, 1);
  const next = registry.register(request("r", other.handle, { deviceId: 1n }), context);
  const another = rejection(registry.register(request("r", other.handle), context));
  await untilIdle();
  expect([driver.openCalls, names()]).toEqual([1, []]);

  gate.resolve();
  expect((await next).deviceId).toBe(1);
  expect((await another).code).toBe("ALREADY_EXISTS");
  expect([driver.opens, driver.closes, names()]).toEqual([2, 1, ["r"]]);
});

test("waiting for a rollback can be aborted as well", async () => {
  const { registry, handle } = createSlowHarness();
  const [first, second] = [new AbortController(), new AbortController()];
  const aborted = registry.register(request("r", handle), contextWith(first.signal));
  await untilIdle();
  first.abort();
  await rejection(aborted);
  const waiting = registry.register(request("r", handle), contextWith(second.signal));
  await untilIdle();
  second.abort();
  await expectRejection(waiting, "CANCELLED", "the call was cancelled");
});

test("an abort after the register was answered changes nothing", async () => {
  const { driver, registry, names } = createHarness();
  const client = new AbortController();
  await registry.register(request("r", driver.allocate(64).handle), contextWith(client.signal));
  client.abort();
  await untilIdle();
  expect([names(), registry.mappings]).toEqual([["r"], 1]);
});

test("a rollback whose close fails keeps the name until an unregister closes it", async () => {
  const { driver, registry, kinds, gate, handle } = createSlowHarness();
  const client = new AbortController();
  const aborted = registry.register(request("r", handle), contextWith(client.signal));
  await untilIdle();
  client.abort();
  await rejection(aborted);
  driver.beforeClose = () => {
    throw driverError(1, "CUDA_ERROR_INVALID_VALUE");
  };
  const waiting = rejection(registry.register(request("r", handle), context));
  gate.resolve();
  expect((await waiting).code).toBe("ALREADY_EXISTS");
  expect([registry.status("r").state, registry.mappings]).toEqual(["close_failed", 1]);
  driver.beforeClose = undefined;
  await registry.unregister("r", context);
  expect([kinds(), registry.mappings]).toEqual([["close_failed r", "unregistered r"], 0]);
});

test("a size that is refused where the close fails too says both", async () => {
  const { driver, registry } = createHarness();
  driver.beforeClose = () => {
    throw driverError(1, "CUDA_ERROR_INVALID_VALUE");
  };
  const { handle } = driver.allocate(64);
  const error = await expectRejection(
    registry.register(request("r", handle, { byteSize: 65n }), context),
    "INTERNAL",
    "failed to register shared memory region 'r': failed to close CUDA IPC handle: " +
      "CUDA_ERROR_INVALID_VALUE (1): hint for 1; unregister the region to try again",
  );
  expect((error.cause as AggregateError).errors[0]).toMatchObject({ code: "INVALID_ARGUMENT" });
  expect(registry.status("r").state).toBe("close_failed");
});

test("a signal shared by many calls gathers no listeners", async () => {
  const { driver, registry } = createHarness();
  const warnings: unknown[] = [];
  const warn = (warning: Error) => warnings.push(warning);
  process.on("warning", warn);
  const { signal } = new AbortController();
  let listeners = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    listeners++;
    add(...args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    listeners--;
    remove(...args);
  };
  const { handle } = driver.allocate(64);
  await Promise.all(
    Array.from({ length: 50 }, (_, i) => registry.register(request(`r${i}`, handle), contextWith(signal))),
  );
  await untilIdle();
  process.off("warning", warn);
  expect([listeners, warnings]).toEqual([0, []]);
});
