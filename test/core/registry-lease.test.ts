import { expect, test } from "vitest";
import { FakeClock } from "../helpers/fake-clock.js";
import { alice, bob, createLifecycle, nothing } from "../helpers/lifecycle-harness.js";
import { context, createHarness, expectRejection, request, untilIdle } from "../helpers/registry-harness.js";

/** A registry with the region r, which has a lease of 10 s. */
async function setUp() {
  const harness = createLifecycle();
  const { driver, registry, clock } = harness;
  const { handle } = driver.allocate(64);
  const region = await registry.register(request("r", handle, { leaseMs: 10_000 }), context);
  const pass = async (ms: number) => {
    clock.advance(ms);
    await untilIdle();
  };
  return { ...harness, handle, region, pass };
}

test("a region with a lease is unregistered when that is over, and not sooner", async () => {
  const { region, changes, clock, states, pass, leftovers } = await setUp();
  const expiry = { leaseMs: 10_000, leaseExpiresAt: clock.now() + 10_000 };
  expect(region).toMatchObject(expiry);
  expect(changes[0]?.region).toMatchObject(expiry);
  await pass(9999);
  expect(states()).toEqual(["r ready"]);
  await pass(1);
  expect(states()).toEqual([]);
  expect(changes.at(-1)).toMatchObject({ kind: "unregistered", reason: "lease_expired" });
  expect(leftovers()).toEqual(nothing);
});

test("each renewal starts the lease anew, and can give it another length", async () => {
  const { registry, clock, states, pass, changes } = await setUp();
  await pass(9999);
  const renewed = await registry.renew("r", {}, context);
  expect(renewed).toMatchObject({ leaseMs: 10_000, leaseExpiresAt: clock.now() + 10_000 });
  expect(registry.status("r")).toEqual(renewed);
  await pass(9999);
  await registry.renew("r", { leaseMs: 1000 }, context);
  await pass(999);
  expect(states()).toEqual(["r ready"]);
  await pass(1);
  expect(states()).toEqual([]);
  expect(changes.map(({ kind }) => kind)).toEqual(["registered", "unregistered"]);
});

test("a region without a lease gets one by a renewal that says how long", async () => {
  const { driver, registry, pass, states } = await setUp();
  await registry.register(request("s", driver.allocate(64).handle), context);
  await expectRejection(
    registry.renew("s", {}, context),
    "FAILED_PRECONDITION",
    "shared memory region 's' has no lease; say how long it shall be",
  );
  await registry.renew("s", { leaseMs: 20_000 }, context);
  await pass(10_000);
  expect(states()).toEqual(["s ready"]);
  await pass(10_000);
  expect(states()).toEqual([]);
});

test("a renewal means the generation that it names", async () => {
  const { registry, region } = await setUp();
  await registry.renew("r", { generation: region.generation }, context);
  await expectRejection(
    registry.renew("r", { generation: 7n }, context),
    "FAILED_PRECONDITION",
    "shared memory region 'r' has generation 1, not 7: it was registered anew",
  );
});

test.each([999, 604_800_001, -1, Number.NaN])("no lease lasts %d ms", async (leaseMs) => {
  const { driver, registry, clock } = await setUp();
  const text = `a lease lasts 1 to 604800 seconds, got ${leaseMs / 1000}`;
  const { handle } = driver.allocate(64);
  await expectRejection(
    registry.register(request("s", handle, { leaseMs }), context),
    "INVALID_ARGUMENT",
    `failed to register shared memory region 's': invalid args: ${text}`,
  );
  await expectRejection(registry.renew("r", { leaseMs }, context), "INVALID_ARGUMENT", text);
  expect(registry.status("r").leaseExpiresAt).toBe(clock.now() + 10_000);
});

test.each([1000, 604_800_000])("a lease lasts %d ms", async (leaseMs) => {
  const { registry, pass, states } = await setUp();
  await registry.renew("r", { leaseMs }, context);
  await pass(leaseMs - 1);
  expect(states()).toEqual(["r ready"]);
  await pass(1);
  expect(states()).toEqual([]);
});

test("nobody renews what is not there, what is another's, or what is on its way out", async () => {
  const { driver, registry, handle } = await setUp();
  await expectRejection(registry.renew("s", {}, context), "NOT_FOUND", /Unable to find/);
  await registry.register(request("s", driver.allocate(64).handle, { leaseMs: 1000 }), alice);
  await expectRejection(registry.renew("s", {}, bob), "PERMISSION_DENIED", /belongs to another client/);
  const pin = registry.pin("r", null, context);
  await registry.unregister("r", context);
  await expectRejection(
    registry.renew("r", {}, context),
    "FAILED_PRECONDITION",
    "shared memory region 'r' is being unregistered",
  );
  pin.release();
  await untilIdle();
  const registering = registry.register(request("r", handle, { leaseMs: 1000 }), context);
  await expectRejection(registry.renew("r", {}, context), "NOT_FOUND", /Unable to find/);
  await registering;
});

test("a region that is pinned when its lease is over drains, and its lease is over for good", async () => {
  const { registry, pass, states, clock, leftovers } = await setUp();
  const pin = registry.pin("r", null, context);
  await pass(10_000);
  expect(registry.status("r")).toMatchObject({ state: "draining", reason: "lease_expired" });
  expect(clock.pending).toBe(0);
  pin.release();
  await untilIdle();
  expect(states()).toEqual([]);
  expect(leftovers()).toEqual(nothing);
});

test("a lease does not outlast a region that goes as soon as it is there", async () => {
  const clock = new FakeClock();
  // Without a journal an unregister leaves no moment between.
  const { driver, registry } = createHarness({ clock });
  const { handle } = driver.allocate(64);
  // Called from where the region is first seen, before its register has gone on.
  const gone = registry.waitFor("r", 1000, context).then(() => registry.unregister("r", context));
  await registry.register(request("r", handle, { leaseMs: 10_000 }), context);
  await gone;
  await untilIdle();
  expect([registry.statuses(), clock.pending]).toEqual([[], 0]);
});

test("an unregister ends the lease", async () => {
  const { registry, leftovers } = await setUp();
  await registry.unregister("r", context);
  expect(leftovers()).toEqual(nothing);
});

test("a lease that is over while observers are slow ends the region once they are done", async () => {
  let go = () => {};
  const slow = new Promise<void>((resolve) => {
    go = resolve;
  });
  const { driver, registry, clock, leftovers } = createLifecycle({ observers: [() => slow] });
  const registering = registry.register(request("r", driver.allocate(64).handle, { leaseMs: 1000 }), context);
  await untilIdle();
  clock.advance(1000);
  go();
  expect((await registering).state).toBe("ready");
  await untilIdle();
  expect(registry.statuses()).toEqual([]);
  expect(leftovers()).toEqual(nothing);
});

test("an expiry that cannot be written down is tried again every 5 seconds", async () => {
  const { journal, pass, states, leftovers } = await setUp();
  journal.isFull = true;
  await pass(10_000);
  await pass(5000);
  expect(states()).toEqual(["r ready"]);
  journal.isFull = false;
  await pass(4999);
  expect(states()).toEqual(["r ready"]);
  await pass(1);
  expect(states()).toEqual([]);
  expect(leftovers()).toEqual(nothing);
});

test("a region whose expiry could not be written down can still be renewed", async () => {
  const { journal, registry, pass, states, clock } = await setUp();
  journal.isFull = true;
  await pass(10_000);
  await registry.renew("r", {}, context);
  expect(clock.pending).toBe(1);
  journal.isFull = false;
  await pass(9999);
  expect(states()).toEqual(["r ready"]);
  await pass(1);
  expect(states()).toEqual([]);
});

test("only a new length is written down, and one that cannot be changes nothing", async () => {
  const { journal, registry, region } = await setUp();
  await registry.renew("r", {}, context);
  expect(journal.entries).toEqual(["registered r"]);
  await registry.renew("r", { leaseMs: 20_000 }, context);
  expect(journal.records.get(region.generation)?.leaseMs).toBe(20_000);
  journal.isFull = true;
  await expectRejection(
    registry.renew("r", { leaseMs: 30_000 }, context),
    "UNAVAILABLE",
    "shared memory region 'r' stays as it was: the state file cannot be written",
  );
  expect(registry.status("r").leaseMs).toBe(20_000);
});

test("of two renewals at once, of which one is refused, the other one counts", async () => {
  const { journal, registry, region } = await setUp();
  journal.beforeWrite = () => {
    journal.beforeWrite = undefined;
    throw new Error("disk full");
  };
  const [refused, renewed] = await Promise.allSettled([
    registry.renew("r", { leaseMs: 20_000 }, context),
    registry.renew("r", { leaseMs: 30_000 }, context),
  ]);
  expect([refused.status, renewed.status]).toEqual(["rejected", "fulfilled"]);
  expect(registry.status("r").leaseMs).toBe(30_000);
  expect(journal.records.get(region.generation)?.leaseMs).toBe(30_000);
});
