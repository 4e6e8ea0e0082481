import { expect, test } from "vitest";
import { createDeferred } from "../helpers/deferred.js";
import { driverError } from "../helpers/fake-driver.js";
import { admin, alice, bob, createLifecycle, nothing } from "../helpers/lifecycle-harness.js";
import { context, contextWith, expectRejection, request, untilIdle } from "../helpers/registry-harness.js";

/** A registry with the region r of generation 1, of alice. */
async function setUp(options: Parameters<typeof createLifecycle>[0] = {}) {
  const harness = createLifecycle(options);
  const { driver, registry } = harness;
  const old = driver.allocate(64);
  const anew = driver.allocate(128);
  await registry.register(request("r", old.handle, { leaseMs: 10_000 }), alice);
  const replace = (caller = alice, fields = {}) =>
    registry.register(request("r", anew.handle, { replaces: 1n, ...fields }), caller);
  return { ...harness, old, anew, replace };
}

test("a replacement opens the new memory, closes the old, and has the name", async () => {
  const { replace, registry, driver, changes, journal, clock, leftovers } = await setUp();
  const order: string[] = [];
  driver.beforeOpen = () => void order.push("open");
  driver.beforeClose = () => void order.push("close");
  const region = await replace();
  expect(order).toEqual(["open", "close"]);
  expect(region).toMatchObject({
    generation: 2n,
    reason: "replaced",
    allocationByteSize: 128n,
    leaseMs: null,
  });
  expect(registry.statuses()).toEqual([region]);
  expect(changes.map(({ kind, reason, region: { generation } }) => [kind, reason, generation])).toEqual([
    ["registered", "requested", 1n],
    ["unregistered", "replaced", 1n],
    ["registered", "replaced", 2n],
  ]);
  expect([...journal.records.keys()]).toEqual([2n]);
  expect([registry.mappings, clock.pending]).toEqual([1, 0]);
  await registry.unregister("r", alice);
  expect(leftovers()).toEqual(nothing);
});

test("a replacement can be of the same memory", async () => {
  const { old, registry, driver } = await setUp();
  await registry.register(request("r", old.handle, { replaces: 1n }), alice);
  expect([driver.opens, driver.closes, registry.mappings]).toEqual([1, 0, 1]);
});

test("a replacement means the generation that it names, and one that is there", async () => {
  const { replace, registry } = await setUp();
  await expectRejection(
    replace(alice, { replaces: 7n }),
    "FAILED_PRECONDITION",
    "shared memory region 'r' has generation 1, not 7: it was registered anew",
  );
  await registry.unregister("r", alice);
  await expectRejection(
    replace(),
    "FAILED_PRECONDITION",
    "failed to register shared memory region 'r': the region of that name cannot be replaced: there is none",
  );
});

test("only its owner and an admin replace a region", async () => {
  const { replace } = await setUp();
  await expectRejection(replace(bob), "PERMISSION_DENIED", /belongs to another client/);
  expect(await replace(admin)).toMatchObject({ owner: "ops", generation: 2n });
});

test("a region that is used is not replaced, and stays as it was", async () => {
  const { replace, registry, driver, states, clock } = await setUp();
  const pin = registry.pin("r", null, alice);
  await expectRejection(replace(), "FAILED_PRECONDITION", /it is used by 1; wait until they let go/);
  expect(states()).toEqual(["r ready"]);
  expect([driver.opens, driver.closes, clock.pending]).toEqual([2, 1, 1]);
  pin.release();
  await replace();
});

test("a region that is on its way out is not replaced", async () => {
  const { replace, registry } = await setUp();
  const pin = registry.pin("r", null, alice);
  await registry.unregister("r", alice);
  await expectRejection(replace(), "FAILED_PRECONDITION", /cannot be replaced: it is draining/);
  pin.release();
});

test("if the new memory cannot be opened, the old stays as it was", async () => {
  const { replace, registry, driver, clock, states } = await setUp();
  driver.beforeOpen = () => {
    throw driverError(1, "CUDA_ERROR_INVALID_VALUE");
  };
  await expectRejection(replace(), "INVALID_ARGUMENT", /CUDA_ERROR_INVALID_VALUE/);
  expect(states()).toEqual(["r ready"]);
  registry.pin("r", null, alice).release();
  clock.advance(10_000);
  await untilIdle();
  expect(states()).toEqual([]);
});

test("if it cannot be written down, the old stays as it was", async () => {
  const { replace, registry, journal, states, leftovers } = await setUp();
  journal.isFull = true;
  await expectRejection(replace(), "UNAVAILABLE", /the state file cannot be written/);
  journal.isFull = false;
  expect(states()).toEqual(["r ready"]);
  expect([...journal.records.keys()]).toEqual([1n]);
  registry.pin("r", null, alice).release();
  await registry.renew("r", {}, alice);
  await registry.unregister("r", alice);
  expect(leftovers()).toEqual(nothing);
});

test("a caller who leaves before the new memory is open leaves the old as it was", async () => {
  const { replace, registry, driver, journal, states, leftovers } = await setUp();
  const opening = createDeferred();
  driver.beforeOpen = () => opening.promise;
  const left = new AbortController();
  const replacing = replace({ ...alice, ...contextWith(left.signal), owner: "alice" });
  await untilIdle();
  left.abort();
  await expectRejection(replacing, "CANCELLED", "the call was cancelled");
  opening.resolve();
  await untilIdle();
  expect(states()).toEqual(["r ready"]);
  expect(journal.entries).toEqual(["registered r"]);
  registry.pin("r", null, alice).release();
  await registry.unregister("r", alice);
  expect(leftovers()).toEqual(nothing);
});

test("a caller who leaves once it is being written down has it replaced all the same", async () => {
  const { replace, registry, journal, leftovers } = await setUp();
  const writing = createDeferred();
  journal.beforeWrite = () => writing.promise;
  const left = new AbortController();
  const replacing = replace({ ...alice, signal: left.signal });
  await untilIdle();
  left.abort();
  writing.resolve();
  expect((await replacing).generation).toBe(2n);
  expect([...journal.records.keys()]).toEqual([2n]);
  await registry.unregister("r", alice);
  expect(leftovers()).toEqual(nothing);
});

test("what goes is neither pinned, renewed nor replaced a second time while it is handed over", async () => {
  const { replace, registry, driver, clock } = await setUp();
  const closing = createDeferred();
  driver.beforeClose = () => closing.promise;
  const replacing = replace();
  await untilIdle();
  expect(() => registry.pin("r", null, alice)).toThrow();
  await expectRejection(registry.renew("r", {}, alice), "FAILED_PRECONDITION", /is being unregistered/);
  await expectRejection(replace(), "FAILED_PRECONDITION", /it is being replaced/);
  await expectRejection(
    registry.register(request("r", driver.allocate(64).handle), alice),
    "ALREADY_EXISTS",
    /already in manager/,
  );
  closing.resolve();
  await replacing;
  expect(clock.pending).toBe(0);
});

test("an unregister, an expiry and an unregister of all wait for the replacement under way", async () => {
  const { replace, registry, driver, clock, changes, leftovers } = await setUp();
  const opening = createDeferred();
  driver.beforeOpen = () => opening.promise;
  const replacing = replace();
  await untilIdle();
  const calls = [registry.unregister("r", alice), registry.unregisterAll(context)];
  clock.advance(10_000);
  await untilIdle();
  expect(changes.length).toBe(1);
  opening.resolve();
  await replacing;
  await Promise.all(calls);
  expect(changes.map(({ kind, reason }) => `${kind} ${reason}`)).toEqual([
    "registered requested",
    "unregistered replaced",
    "registered replaced",
    "unregistered requested",
  ]);
  expect(leftovers()).toEqual(nothing);
});

test("if the old memory cannot be closed, the name stays its own until that is done", async () => {
  const { replace, registry, driver, journal, states, leftovers } = await setUp();
  driver.beforeClose = () => {
    driver.beforeClose = undefined;
    throw driverError(1, "CUDA_ERROR_INVALID_VALUE");
  };
  await expectRejection(replace(), "INTERNAL", /failed to close CUDA IPC handle/);
  expect(states()).toEqual(["r close_failed"]);
  expect(registry.status("r").generation).toBe(1n);
  expect(journal.names()).toEqual([]);
  await registry.unregister("r", alice);
  expect(leftovers()).toEqual(nothing);
  await registry.register(request("r", driver.allocate(64).handle), bob);
});

test("if neither the old nor the new memory can be closed, one unregister closes both", async () => {
  const { replace, registry, driver, states, leftovers } = await setUp();
  driver.beforeClose = () => {
    throw driverError(1, "CUDA_ERROR_INVALID_VALUE");
  };
  await expectRejection(replace(), "INTERNAL", /failed to close CUDA IPC handle/);
  expect([states(), registry.mappings]).toEqual([["r close_failed"], 2]);
  await expectRejection(registry.unregister("r", alice), "INTERNAL", /failed to close/);
  driver.beforeClose = undefined;
  await registry.unregister("r", alice);
  expect(leftovers()).toEqual(nothing);
});

test("new memory that does not fit and cannot be closed goes with the region that stays", async () => {
  const { replace, registry, driver, names, states, leftovers } = await setUp();
  driver.beforeClose = () => {
    driver.beforeClose = undefined;
    throw driverError(1, "CUDA_ERROR_INVALID_VALUE");
  };
  await expectRejection(replace(alice, { byteSize: 129n }), "INTERNAL", /failed to close/);
  expect([names(), states(), registry.mappings]).toEqual([["r"], ["r ready"], 2]);
  await registry.unregister("r", alice);
  expect(leftovers()).toEqual(nothing);
});

test("an observer that refuses the new region takes the name from both", async () => {
  const { replace, registry, changes, leftovers } = await setUp({
    observers: [
      ({ kind, reason }) => {
        if (kind === "registered" && reason === "replaced") throw new Error("no");
      },
    ],
  });
  await expectRejection(replace(), "INTERNAL", /internal error/);
  expect(registry.statuses()).toEqual([]);
  expect(changes.map(({ kind, region }) => `${kind} ${region.generation}`)).toEqual([
    "registered 1",
    "unregistered 1",
    "registered 2",
    "unregistered 2",
  ]);
  expect(leftovers()).toEqual(nothing);
});

test("a stop during a replacement gives both mappings back", async () => {
  const { replace, registry, driver, journal, leftovers } = await setUp();
  const opening = createDeferred();
  driver.beforeOpen = () => opening.promise;
  const replacing = replace();
  await untilIdle();
  const closed = registry.close();
  await expectRejection(replacing, "UNAVAILABLE", "Server exiting");
  opening.resolve();
  await closed;
  expect(leftovers()).toEqual({ ...nothing, written: ["r"] });
  expect([...journal.records.keys()]).toEqual([1n]);
});

test("a region in place of another counts once against the most there may be, and with its own bytes", async () => {
  const { driver, registry, replace } = await setUp({ limits: { maxRegions: 1, maxOwnerBytes: 100n } });
  await expectRejection(replace(alice, { byteSize: 101n }), "RESOURCE_EXHAUSTED", /--max-owner-bytes/);
  await replace(alice, { byteSize: 100n });
  await expectRejection(
    registry.register(request("s", driver.allocate(64).handle), bob),
    "RESOURCE_EXHAUSTED",
    /--max-regions/,
  );
  await registry.register(request("r", driver.allocate(100).handle, { replaces: 3n, byteSize: 100n }), alice);
});
