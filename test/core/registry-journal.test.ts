import { expect, test } from "vitest";
import { createDeferred } from "../helpers/deferred.js";
import { driverError } from "../helpers/fake-driver.js";
import { alice, createLifecycle, nothing, within } from "../helpers/lifecycle-harness.js";
import { context, contextWith, expectRejection, request, untilIdle } from "../helpers/registry-harness.js";

function setUp() {
  const harness = createLifecycle();
  const { driver, registry } = harness;
  const { handle } = driver.allocate(4096);
  const register = (name = "r", fields = {}, caller = context) =>
    registry.register(request(name, handle, fields), caller);
  return { ...harness, handle, register };
}

test("what is written down of a region is all that it takes to open it again", async () => {
  const { register, journal, exporters, openSession, clock, handle } = setUp();
  const hold = openSession(10_000, "alice");
  const exporter = exporters.start();
  const labels = new Map([["model", "resnet"]]);
  const fields = { offset: 1024n, leaseMs: 5000, exporter, labels, deviceId: 1n };
  const { deviceUuid } = await register("r", fields, { ...within(hold), protocol: "grpc" });
  const [record] = journal.records.values();
  expect(record).toEqual({
    generation: 1n,
    name: "r",
    handle,
    deviceId: 1,
    deviceUuid,
    byteSize: 64n,
    offset: 1024n,
    owner: "alice",
    session: {
      id: hold.session.id,
      owner: "alice",
      resumeGraceMs: 10_000,
      secretDigest: expect.stringMatching(/^[0-9a-f]{64}$/),
    },
    protocol: "grpc",
    registeredAt: clock.now(),
    leaseMs: 5000,
    exporter,
    labels,
  });
});

test("a region is written down before anyone sees it or is answered", async () => {
  const { register, journal, states, changes } = setUp();
  const writing = createDeferred();
  journal.beforeWrite = () => writing.promise;
  let isAnswered = false;
  const registering = register().then(() => {
    isAnswered = true;
  });
  await untilIdle();
  expect([isAnswered, states(), changes]).toEqual([false, [], []]);
  writing.resolve();
  await registering;
  expect(states()).toEqual(["r ready"]);
});

test("a region that cannot be written down is refused, its mapping closed, and its name free", async () => {
  const { register, journal, changes, driver, leftovers } = setUp();
  journal.isFull = true;
  await expectRejection(
    register(),
    "UNAVAILABLE",
    "failed to register shared memory region 'r': the state file cannot be written",
  );
  expect([changes, driver.opens, driver.closes]).toEqual([[], 1, 1]);
  expect(leftovers()).toEqual(nothing);
  journal.isFull = false;
  await register();
});

test("a journal that fails by a fault of its own tells nobody which", async () => {
  const { register, journal } = setUp();
  journal.beforeWrite = () => {
    throw new Error("secret path");
  };
  await expectRejection(register(), "INTERNAL", /internal error/);
});

test("that a region goes is written down before it is closed", async () => {
  const { register, registry, journal, driver, states } = setUp();
  await register();
  const writing = createDeferred();
  journal.beforeWrite = () => writing.promise;
  const unregistered = registry.unregister("r", context);
  await untilIdle();
  expect([states(), driver.closeCalls]).toEqual([["r ready"], 0]);
  writing.resolve();
  await unregistered;
  expect([states(), journal.names()]).toEqual([[], []]);
});

test("that a pinned region goes is written down before it drains", async () => {
  const { register, registry, journal } = setUp();
  await register();
  const pin = registry.pin("r", null, context);
  await registry.unregister("r", context);
  expect(journal.names()).toEqual([]);
  pin.release();
});

test("an unregister that cannot be written down leaves the region as it was", async () => {
  const { register, registry, journal, states, changes } = setUp();
  await register("r", { leaseMs: 10_000 });
  journal.isFull = true;
  await expectRejection(
    registry.unregister("r", context),
    "UNAVAILABLE",
    "shared memory region 'r' stays as it was: the state file cannot be written",
  );
  await expectRejection(registry.unregisterAll(context), "INTERNAL", /Failed to unregister/);
  expect([states(), changes.length]).toEqual([["r ready"], 1]);
  registry.pin("r", null, context).release();
  await registry.renew("r", {}, context);
  journal.isFull = false;
  await registry.unregister("r", context);
  expect(states()).toEqual([]);
});

test("everyone who unregisters a region waits for the same write", async () => {
  const { register, registry, journal, clock } = setUp();
  await register("r", { leaseMs: 1000 });
  const writing = createDeferred();
  journal.beforeWrite = () => writing.promise;
  const calls = [registry.unregister("r", context), registry.release("r", {}, context)];
  clock.advance(1000);
  await untilIdle();
  writing.resolve();
  await Promise.all(calls);
  expect(journal.entries).toEqual(["registered r", "left r"]);
});

test("nothing is written of a register that is abandoned before its memory is open", async () => {
  const { register, driver, journal, leftovers } = setUp();
  const opening = createDeferred();
  driver.beforeOpen = () => opening.promise;
  const left = new AbortController();
  const registering = register("r", {}, contextWith(left.signal));
  await untilIdle();
  left.abort();
  await expectRejection(registering, "CANCELLED", "the call was cancelled");
  opening.resolve();
  await untilIdle();
  expect(journal.entries).toEqual([]);
  expect(leftovers()).toEqual(nothing);
});

test("a register that is abandoned while it is written down is taken out again", async () => {
  const { register, journal, leftovers } = setUp();
  const writing = createDeferred();
  journal.beforeWrite = () => writing.promise;
  const left = new AbortController();
  const registering = register("r", {}, contextWith(left.signal));
  await untilIdle();
  left.abort();
  await expectRejection(registering, "CANCELLED", "the call was cancelled");
  writing.resolve();
  await untilIdle();
  expect(journal.entries).toEqual(["registered r", "left r"]);
  expect(leftovers()).toEqual(nothing);
});

test("what an observer refuses is taken out again, now or as soon as that is possible", async () => {
  const { journal, clock, driver, registry, leftovers } = createLifecycle({
    observers: [
      ({ kind }) => {
        if (kind === "registered") throw new Error("no");
      },
      () => {
        journal.isFull = true;
      },
    ],
  });
  const { handle } = driver.allocate(64);
  await expectRejection(registry.register(request("r", handle), context), "INTERNAL", /internal error/);
  expect([registry.statuses(), registry.mappings, journal.names()]).toEqual([[], 0, ["r"]]);
  clock.advance(5000);
  await untilIdle();
  expect(journal.names()).toEqual(["r"]);
  journal.isFull = false;
  clock.advance(5000);
  await untilIdle();
  expect(leftovers()).toEqual(nothing);
});

test("what could not be taken out is replaced by the next region of its name", async () => {
  let refuses = true;
  const { journal, driver, registry, leftovers } = createLifecycle({
    observers: [
      ({ kind }) => {
        if (kind !== "registered" || !refuses) return;
        journal.isFull = true;
        throw new Error("no");
      },
    ],
  });
  const { handle } = driver.allocate(64);
  await expectRejection(registry.register(request("r", handle), context), "INTERNAL", /internal error/);
  journal.isFull = refuses = false;
  const { generation } = await registry.register(request("r", handle), context);
  // A restart would otherwise find two, and take up the older.
  expect([...journal.records.keys()]).toEqual([generation]);
  await registry.unregister("r", context);
  expect(leftovers()).toEqual({ ...nothing, timers: 1 });
  await registry.close();
  expect(leftovers()).toEqual(nothing);
});

test("a region that could not be closed is not written down any more", async () => {
  const { register, registry, journal, driver } = setUp();
  await register();
  driver.beforeClose = () => {
    throw driverError(1, "CUDA_ERROR_INVALID_VALUE");
  };
  await expectRejection(registry.unregister("r", context), "INTERNAL", /failed to close/);
  expect(journal.names()).toEqual([]);
  journal.isFull = true;
  driver.beforeClose = undefined;
  await registry.unregister("r", context);
});

test("a stop writes nothing, so that the next start finds what there was", async () => {
  const { register, registry, journal, exporters, leftovers } = setUp();
  const exporter = exporters.start();
  await register("a");
  await register("b", { leaseMs: 1000 }, alice);
  await register("c", { exporter });
  exporters.exit(exporter);
  const pin = registry.pin("a", null, context);
  const { length } = journal.entries;
  const closed = registry.close();
  pin.release();
  await closed;
  expect(journal.entries.length).toBe(length);
  expect(leftovers()).toEqual({ ...nothing, written: ["a", "b", "c"] });
});

test("a stop goes on with what an unregister could not write down", async () => {
  const { register, registry, journal, leftovers } = setUp();
  await register("r", { leaseMs: 1000 });
  const writing = createDeferred();
  journal.beforeWrite = () => writing.promise;
  const unregistered = registry.unregister("r", context);
  const closed = registry.close();
  writing.reject(new Error("disk full"));
  await expectRejection(unregistered, "INTERNAL", /stays as it was/);
  await closed;
  expect(leftovers()).toEqual({ ...nothing, written: ["r"] });
});

test("a stop goes on with what an expiry could not write down", async () => {
  const { register, registry, journal, clock, leftovers } = setUp();
  await register("r", { leaseMs: 1000 });
  const writing = createDeferred();
  journal.beforeWrite = () => writing.promise;
  clock.advance(1000);
  const closed = registry.close();
  writing.reject(new Error("disk full"));
  await closed;
  expect(leftovers()).toEqual({ ...nothing, written: ["r"] });
});

test("an unregister during the stop is written down", async () => {
  const { register, registry, journal } = setUp();
  await register();
  registry.refuseRegisters();
  await registry.unregister("r", context);
  await registry.close();
  expect(journal.names()).toEqual([]);
});
