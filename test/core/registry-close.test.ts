import { expect, test } from "vitest";
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

test("close gives every mapping back", async () => {
  const { driver, registry, kinds } = createHarness();
  for (const name of ["a", "b"]) await registry.register(request(name, driver.allocate(64).handle), context);
  await registry.close();
  expect([driver.opens, driver.closes, registry.mappings, registry.statuses()]).toEqual([2, 2, 0, []]);
  expect(kinds().slice(2).sort()).toEqual(["unregistered a", "unregistered b"]);
});

test("the second close waits for the first, and both are one", async () => {
  const { driver, registry } = createHarness();
  await registry.register(request("r", driver.allocate(64).handle), context);
  const gate = createDeferred();
  driver.beforeClose = () => gate.promise;
  let closed = 0;
  const closes = [registry.close(), registry.close(), registry[Symbol.asyncDispose]()].map((close) =>
    close.then(() => closed++),
  );
  await untilIdle();
  expect(closed).toBe(0);
  gate.resolve();
  await Promise.all(closes);
  await registry.close();
  expect(driver.closeCalls).toBe(1);
});

test("an `await using` registry is closed at the end of its block", async () => {
  const { driver, registry } = createHarness();
  {
    await using scoped = registry;
    await scoped.register(request("r", driver.allocate(64).handle), context);
  }
  expect(driver.openMappings).toBe(0);
});

test("a closed registry, or one told to, refuses registers and answers everything else", async () => {
  const { driver, registry } = createHarness();
  const { handle } = driver.allocate(64);
  await registry.register(request("r", handle), context);
  registry.refuseRegisters();
  await expectRejection(registry.register(request("s", handle), context), "UNAVAILABLE", "Server exiting");
  // Whether the name is taken is no longer of interest.
  await expectRejection(registry.register(request("r", handle), context), "UNAVAILABLE", "Server exiting");
  await expectRejection(registry.register(request("..", handle), context), "INVALID_ARGUMENT", /folds|fold/);
  expect(registry.status("r").state).toBe("ready");
  registry.pin("r", null, context).release();
  await registry.unregister("r", context);
  await registry.close();
  await expectRejection(registry.register(request("s", handle), context), "UNAVAILABLE", "Server exiting");
  await registry.unregisterAll(context);
});

test("close undoes the registers under way: their callers are answered at once, it waits for the driver", async () => {
  const { driver, registry, changes } = createHarness();
  const gate = createDeferred();
  driver.beforeOpen = () => gate.promise;
  const register = registry.register(request("r", driver.allocate(64).handle), context);
  await untilIdle();
  let closed = false;
  const close = registry.close().then(() => {
    closed = true;
  });
  await expectRejection(register, "UNAVAILABLE", "Server exiting");
  await untilIdle();
  expect(closed).toBe(false);
  gate.resolve();
  await close;
  expect([driver.opens, driver.closes, registry.mappings, changes]).toEqual([1, 1, 0, []]);
});

test("a register that waits for a rollback is refused by a close", async () => {
  const { driver, registry } = createHarness();
  const gate = createDeferred();
  driver.beforeOpen = () => gate.promise;
  const client = new AbortController();
  const { handle } = driver.allocate(64);
  const aborted = rejection(registry.register(request("r", handle), { ...context, signal: client.signal }));
  await untilIdle();
  client.abort();
  await aborted;
  const waiting = registry.register(request("r", handle), context);
  const close = registry.close();
  gate.resolve();
  await expectRejection(waiting, "UNAVAILABLE", "Server exiting");
  await close;
  expect([driver.opens, driver.closes]).toEqual([1, 1]);
});

test("close waits for pins and for the copies under way", async () => {
  const { driver, registry } = createHarness();
  await registry.register(request("r", driver.allocate(64).handle), context);
  const gate = createDeferred();
  driver.beforeCopy = () => gate.promise;
  const pin = registry.pin("r", null, context);
  const copy = pin.read(0n, new Uint8Array(1));
  let closed = false;
  const close = registry.close().then(() => {
    closed = true;
  });
  await untilIdle();
  pin.release();
  await untilIdle();
  expect([closed, driver.closeCalls]).toEqual([false, 0]);
  gate.resolve();
  await copy;
  await close;
  expect([driver.closes, registry.mappings]).toEqual([1, 0]);
});

test("close waits for an unregister that is under way already", async () => {
  const { driver, registry } = createHarness();
  await registry.register(request("r", driver.allocate(64).handle), context);
  const gate = createDeferred();
  driver.beforeClose = () => gate.promise;
  const unregister = registry.unregister("r", context);
  const close = registry.close();
  gate.resolve();
  await Promise.all([unregister, close]);
  expect(driver.closeCalls).toBe(1);
});

test("close names the regions that the driver would not take back, and gives back the others", async () => {
  const { driver, registry } = createHarness();
  for (const name of ["bad", "good"]) {
    const { handle } = driver.allocate(name === "bad" ? 100 : 64);
    await registry.register(request(name, handle), context);
  }
  driver.beforeClose = ({ byteSize }) => {
    if (byteSize === 100n) throw driverError(1, "CUDA_ERROR_INVALID_VALUE");
  };
  const error = await expectRejection(
    registry.close(),
    "INTERNAL",
    "Failed to unregister the following cuda shared memory regions: bad ,",
  );
  expect((error.cause as AggregateError).errors).toMatchObject([
    { code: "INTERNAL", driver: { cudaCode: 1 } },
  ]);
  expect([registry.mappings, driver.openMappings]).toEqual([1, 1]);
  expect((await rejection(registry.close())).message).toBe(error.message);
});

test("close tries a failed close once more, and after a sticky fault not even that", async () => {
  for (const [code, calls] of [
    [1, 2],
    [719, 1],
  ] as const) {
    const { driver, registry } = createHarness();
    await registry.register(request("r", driver.allocate(64).handle), context);
    driver.beforeClose = () => {
      throw driverError(code, "CUDA_ERROR");
    };
    await rejection(registry.unregister("r", context));
    await rejection(registry.close());
    expect(driver.closeCalls).toBe(calls);
  }
});

test("close of an empty registry asks the driver nothing", async () => {
  const { driver, registry } = createHarness();
  driver.devicesError = new Error("must not be asked");
  await registry.close();
  expect(driver.openCalls).toBe(0);
});
