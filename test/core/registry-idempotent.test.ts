import { expect, test } from "vitest";
import { createDeferred } from "../helpers/deferred.js";
import { alice, bob, createLifecycle, nothing, within } from "../helpers/lifecycle-harness.js";
import { context, contextWith, expectRejection, request, untilIdle } from "../helpers/registry-harness.js";

async function setUp() {
  const harness = createLifecycle();
  const { driver, registry } = harness;
  const { handle } = driver.allocate(128);
  const again = (fields = {}, caller = alice) =>
    registry.register(request("r", handle, { isIdempotent: true, ...fields }), caller);
  const region = await again({ leaseMs: 10_000 });
  return { ...harness, handle, again, region };
}

test("the same again changes nothing, but starts the lease anew", async () => {
  const { again, region, clock, registry, driver, changes, journal } = await setUp();
  clock.advance(4000);
  const same = await again();
  expect(same).toEqual({ ...region, leaseExpiresAt: clock.now() + 10_000 });
  expect(registry.status("r")).toEqual(same);
  expect([changes.length, driver.opens, journal.entries.length, clock.pending]).toEqual([1, 1, 1, 1]);
});

test("the same device by its UUID is the same again", async () => {
  const { again, region } = await setUp();
  const same = await again({ deviceId: undefined, deviceUuid: region.deviceUuid });
  expect(same.generation).toBe(region.generation);
});

test.each([
  ["another size", { byteSize: 65n }],
  ["another offset", { offset: 1n }],
  ["another device", { deviceId: 1n }],
  ["another device's UUID", { deviceUuid: "GPU-00000000-0000-0000-0000-000000000001" }],
  ["without being asked for idempotently", { isIdempotent: false }],
])("%s is not the same again", async (_, fields) => {
  const { again } = await setUp();
  await expectRejection(again(fields), "ALREADY_EXISTS", "shared memory region 'r' already in manager");
});

test("another handle or another owner is not the same again", async () => {
  const { again, driver, registry } = await setUp();
  const other = request("r", driver.allocate(128).handle, { isIdempotent: true });
  await expectRejection(registry.register(other, alice), "ALREADY_EXISTS", /already in manager/);
  await expectRejection(again({}, bob), "ALREADY_EXISTS", /already in manager/);
  await expectRejection(again({}, context), "ALREADY_EXISTS", /already in manager/);
});

test("what is not shown as ready is not the same again", async () => {
  const { again, registry } = await setUp();
  const pin = registry.pin("r", null, alice);
  await registry.unregister("r", alice);
  await expectRejection(again(), "ALREADY_EXISTS", /already in manager/);
  pin.release();
});

test("the same is registered anew once it is gone", async () => {
  const { again, registry } = await setUp();
  await registry.unregister("r", alice);
  expect((await again()).generation).toBe(2n);
});

test("ten of the same at once are one region", async () => {
  const { driver, registry } = createLifecycle();
  const { handle } = driver.allocate(64);
  const all = Array.from({ length: 10 }, () =>
    registry.register(request("r", handle, { isIdempotent: true }), alice),
  );
  const generations = (await Promise.all(all)).map(({ generation }) => generation);
  expect([...new Set(generations), driver.opens]).toEqual([1n, 1]);
});

test("whoever waits for another's register of the same goes on himself if that is undone", async () => {
  const { driver, registry, leftovers } = createLifecycle();
  const opening = createDeferred();
  driver.beforeOpen = () => opening.promise;
  const { handle } = driver.allocate(64);
  const left = new AbortController();
  const same = request("r", handle, { isIdempotent: true });
  const first = registry.register(same, contextWith(left.signal));
  const second = registry.register(same, context);
  await untilIdle();
  left.abort();
  await expectRejection(first, "CANCELLED", "the call was cancelled");
  opening.resolve();
  expect((await second).generation).toBe(2n);
  await registry.unregister("r", context);
  expect(leftovers()).toEqual(nothing);
});

test("whoever waits for another's register of the same stops waiting when he leaves", async () => {
  const { driver, registry } = createLifecycle();
  const opening = createDeferred();
  driver.beforeOpen = () => opening.promise;
  const same = request("r", driver.allocate(64).handle, { isIdempotent: true });
  const first = registry.register(same, context);
  const left = new AbortController();
  const second = registry.register(same, contextWith(left.signal));
  await untilIdle();
  left.abort();
  await expectRejection(second, "CANCELLED", "the call was cancelled");
  opening.resolve();
  await first;
});

test("the same again waits for what replaces it, and is then another's name", async () => {
  const { again, driver, registry, clock } = await setUp();
  const closing = createDeferred();
  driver.beforeClose = () => closing.promise;
  const other = driver.allocate(64).handle;
  const replacing = registry.register(request("r", other, { replaces: 1n }), alice);
  await untilIdle();
  const same = again();
  closing.resolve();
  await replacing;
  await expectRejection(same, "ALREADY_EXISTS", /already in manager/);
  expect(clock.pending).toBe(0);
});

test("the same again in its session is the same, and no longer once that has ended", async () => {
  const { driver, registry, openSession } = createLifecycle();
  const hold = openSession();
  const same = request("r", driver.allocate(64).handle, { isIdempotent: true });
  const { generation } = await registry.register(same, within(hold));
  expect((await registry.register(same, within(hold))).generation).toBe(generation);
  hold.end();
  await untilIdle();
  await expectRejection(registry.register(same, within(hold)), "UNAUTHENTICATED", /session has ended/);
});

test("of one owner's sessions only that which a region lives as long as has the same again", async () => {
  const { driver, registry, openSession } = createLifecycle();
  const [first, second] = [openSession(5000, "alice"), openSession(0, "alice")];
  const same = request("r", driver.allocate(64).handle, { isIdempotent: true });
  const { generation } = await registry.register(same, within(first));
  for (const caller of [within(second), alice]) {
    await expectRejection(registry.register(same, caller), "ALREADY_EXISTS", /already in manager/);
  }
  expect((await registry.register(same, within(first))).generation).toBe(generation);
});

test("what nobody's session ends is not the same as what a session would end", async () => {
  const { again, openSession } = await setUp();
  await expectRejection(again({}, within(openSession(0, "alice"))), "ALREADY_EXISTS", /already in manager/);
});

test("the same again with an exporter is the same again of that exporter alone", async () => {
  const { again, region } = await setUp();
  const exporter = { pid: 7, startTime: 1n, bootId: "b", pidNamespace: 1n };
  // It would be told yes, and nobody would watch.
  await expectRejection(again({ exporter }), "ALREADY_EXISTS", /already in manager/);
  expect((await again()).generation).toBe(region.generation);
});

test("a lease that the same again brings counts from then on, and is checked as in a first register", async () => {
  const { again, region, clock, journal } = await setUp();
  clock.advance(4000);
  const same = await again({ leaseMs: 60_000 });
  expect(same).toEqual({ ...region, leaseMs: 60_000, leaseExpiresAt: clock.now() + 60_000 });
  expect(journal.entries.length).toBe(2);
  await expectRejection(again({ leaseMs: 0 }), "INVALID_ARGUMENT", /a lease lasts 1 to 604800 seconds/);
});
