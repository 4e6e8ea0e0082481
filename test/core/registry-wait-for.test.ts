import { expect, test } from "vitest";
import { alice, bob, createLifecycle } from "../helpers/lifecycle-harness.js";
import { context, contextWith, expectRejection, request, untilIdle } from "../helpers/registry-harness.js";

test("a region that is ready is waited for no longer", async () => {
  const { driver, registry, clock } = createLifecycle();
  const region = await registry.register(request("r", driver.allocate(64).handle), context);
  expect(await registry.waitFor("r", 0, context)).toEqual(region);
  expect(clock.pending).toBe(0);
});

test("a region is waited for until it is ready, whatever else happens meanwhile", async () => {
  const { driver, registry, clock } = createLifecycle();
  const { handle } = driver.allocate(64);
  const waiting = registry.waitFor("r", 60_000, context);
  await registry.register(request("s", handle), context);
  clock.advance(59_999);
  const region = await registry.register(request("r", handle), context);
  expect(await waiting).toEqual(region);
  expect(clock.pending).toBe(0);
});

test("what drains is not ready; the next of its name is", async () => {
  const { driver, registry } = createLifecycle();
  const { handle } = driver.allocate(64);
  await registry.register(request("r", handle), context);
  const pin = registry.pin("r", null, context);
  await registry.unregister("r", context);
  const waiting = registry.waitFor("r", 60_000, context);
  pin.release();
  await untilIdle();
  await registry.register(request("r", handle), context);
  expect((await waiting).generation).toBe(2n);
});

test("whoever leaves waits no longer", async () => {
  const { registry, clock } = createLifecycle();
  const left = new AbortController();
  const waiting = registry.waitFor("r", 60_000, contextWith(left.signal));
  left.abort();
  await expectRejection(waiting, "CANCELLED", "the call was cancelled");
  await expectRejection(registry.waitFor("r", 60_000, contextWith(left.signal)), "CANCELLED", /cancelled/);
  expect(clock.pending).toBe(0);
});

test("where access is by owner another's region is waited for in vain", async () => {
  const { driver, registry, clock } = createLifecycle({ policy: { access: "owner", unregisterAll: "all" } });
  const waiting = registry.waitFor("r", 1000, bob);
  await registry.register(request("r", driver.allocate(64).handle), alice);
  await untilIdle();
  clock.advance(1000);
  await expectRejection(
    waiting,
    "DEADLINE_EXCEEDED",
    "shared memory region 'r' did not become ready in the time given",
  );
});
