import { expect, test } from "vitest";
import { createDeferred } from "../helpers/deferred.js";
import { driverError } from "../helpers/fake-driver.js";
import { admin, alice, bob, createLifecycle, nothing } from "../helpers/lifecycle-harness.js";
import { expectRejection, request, untilIdle } from "../helpers/registry-harness.js";

/** A registry with the region r, of alice. */
async function setUp() {
  const harness = createLifecycle();
  const { driver, registry } = harness;
  const { handle } = driver.allocate(64);
  await registry.register(request("r", handle), alice);
  const release = (options = {}, caller = alice) => registry.release("r", options, caller);
  return { ...harness, handle, release, pin: () => registry.pin("r", null, alice) };
}

test("a release of what nobody uses closes it before it answers", async () => {
  const { release, leftovers, clock } = await setUp();
  expect(await release({ waitMs: 1000 })).toEqual({ isClosed: true, pins: 0 });
  expect(clock.pending).toBe(0);
  expect(leftovers()).toEqual(nothing);
});

test("a release that does not wait tells by how many it is still used, and nobody may pin it from then on", async () => {
  const { release, pin, states, changes, leftovers } = await setUp();
  const pins = [pin(), pin()];
  expect(await release()).toEqual({ isClosed: false, pins: 2 });
  expect(states()).toEqual(["r draining"]);
  expect(pin).toThrow("shared memory region 'r' is being unregistered");
  expect(await release()).toEqual({ isClosed: false, pins: 2 });
  for (const held of pins) held.release();
  await untilIdle();
  expect(changes.map(({ kind, reason }) => `${kind} ${reason}`)).toEqual([
    "registered requested",
    "draining requested",
    "unregistered requested",
  ]);
  expect(leftovers()).toEqual(nothing);
});

test("what Triton's unregister drains can be pinned until a release asks for it", async () => {
  const { registry, pin, release } = await setUp();
  const first = pin();
  await registry.unregister("r", alice);
  const second = pin();
  await release();
  expect(pin).toThrow("is being unregistered");
  first.release();
  second.release();
});

test("a release that waits answers when the last pin has let go and the mapping is closed", async () => {
  const { release, pin, driver, clock, leftovers } = await setUp();
  const closing = createDeferred();
  driver.beforeClose = () => closing.promise;
  const held = pin();
  let answer: unknown;
  const released = release({ waitMs: 60_000 }).then((outcome) => {
    answer = outcome;
  });
  await untilIdle();
  held.release();
  await untilIdle();
  expect(answer).toBeUndefined();
  closing.resolve();
  await released;
  expect([answer, clock.pending]).toEqual([{ isClosed: true, pins: 0 }, 0]);
  expect(leftovers()).toEqual(nothing);
});

test("a release that waits in vain is told so, and the region still goes with its last pin", async () => {
  const { release, pin, clock, leftovers } = await setUp();
  const held = pin();
  const released = release({ waitMs: 1000 });
  await untilIdle();
  clock.advance(1000);
  await expectRejection(
    released,
    "DEADLINE_EXCEEDED",
    "shared memory region 'r' is unregistered and still used by 1; its mapping is closed when they let go",
  );
  held.release();
  await untilIdle();
  expect(leftovers()).toEqual(nothing);
});

test("force takes the region from whoever uses it, once the wait is over", async () => {
  const { release, pin, clock, changes, leftovers } = await setUp();
  const held = pin();
  const released = release({ waitMs: 1000, isForced: true });
  await untilIdle();
  clock.advance(999);
  await untilIdle();
  await held.read(0n, new Uint8Array(64));
  clock.advance(1);
  expect(await released).toEqual({ isClosed: true, pins: 0 });
  await expectRejection(
    held.read(0n, new Uint8Array(1)),
    "FAILED_PRECONDITION",
    "shared memory region 'r' was unregistered by force",
  );
  held.release();
  expect(changes.at(-1)).toMatchObject({ kind: "unregistered", reason: "forced" });
  expect(leftovers()).toEqual(nothing);
});

test("force without a wait takes it at once, from all who use it", async () => {
  const { release, pin, leftovers } = await setUp();
  const pins = [pin(), pin(), pin()];
  expect(await release({ isForced: true })).toEqual({ isClosed: true, pins: 0 });
  for (const held of pins) held.release();
  expect(leftovers()).toEqual(nothing);
});

test("force lets copies under way end, and closes only then", async () => {
  const { release, pin, driver, leftovers } = await setUp();
  const copying = createDeferred();
  driver.beforeCopy = () => copying.promise;
  const [reading, idle, gone] = [pin(), pin(), pin()];
  const read = reading.read(0n, new Uint8Array(64));
  const last = gone.checksum(0n, 64n);
  gone.release();
  const released = release({ isForced: true });
  await untilIdle();
  expect(driver.closeCalls).toBe(0);
  await expectRejection(reading.write(0n, new Uint8Array(1)), "FAILED_PRECONDITION", /by force/);
  await expectRejection(idle.write(0n, new Uint8Array(1)), "FAILED_PRECONDITION", /by force/);
  copying.resolve();
  await read;
  await last;
  expect(await released).toEqual({ isClosed: true, pins: 0 });
  expect(leftovers()).toEqual(nothing);
});

test("whoever leaves while force waits for the last copy is answered, and the region still goes", async () => {
  const { release, pin, driver, leftovers } = await setUp();
  const copying = createDeferred();
  driver.beforeCopy = () => copying.promise;
  const read = pin().read(0n, new Uint8Array(64));
  const left = new AbortController();
  const released = release({ isForced: true }, { ...alice, signal: left.signal });
  await untilIdle();
  left.abort();
  await expectRejection(released, "CANCELLED", "the call was cancelled");
  copying.resolve();
  await read;
  await untilIdle();
  expect(leftovers()).toEqual(nothing);
});

test("a release means the generation that it names, and a region that is there", async () => {
  const { release, registry, states } = await setUp();
  await expectRejection(
    release({ generation: 7n }),
    "FAILED_PRECONDITION",
    "shared memory region 'r' has generation 1, not 7: it was registered anew",
  );
  expect(states()).toEqual(["r ready"]);
  await release({ generation: 1n });
  await expectRejection(
    registry.release("r", {}, alice),
    "NOT_FOUND",
    "Unable to find cuda shared memory region: 'r'",
  );
});

test("anyone releases where access is shared; force takes its owner or an admin", async () => {
  const { release, registry, handle } = await setUp();
  await expectRejection(release({ isForced: true }, bob), "PERMISSION_DENIED", /belongs to another client/);
  await release({}, bob);
  await registry.register(request("r", handle), alice);
  await release({ isForced: true }, admin);
});

test("a release whose close fails says so, also to those who wait for it", async () => {
  const { release, pin, driver, states, leftovers, clock } = await setUp();
  driver.beforeClose = () => {
    throw driverError(1, "CUDA_ERROR_INVALID_VALUE");
  };
  const held = pin();
  const calls = [release({ waitMs: 1000 }), release({ isForced: true, waitMs: 2000 })];
  await untilIdle();
  held.release();
  for (const call of calls) await expectRejection(call, "INTERNAL", /failed to close CUDA IPC handle/);
  expect([states(), clock.pending]).toEqual([["r close_failed"], 0]);
  driver.beforeClose = undefined;
  expect(await release()).toEqual({ isClosed: true, pins: 0 });
  expect(leftovers()).toEqual(nothing);
});

test("a release that cannot be written down leaves the region as it was", async () => {
  const { release, pin, journal, states } = await setUp();
  journal.isFull = true;
  await expectRejection(release(), "UNAVAILABLE", /stays as it was: the state file cannot be written/);
  expect(states()).toEqual(["r ready"]);
  pin().release();
});

test("a release of a name that is being registered waits for that", async () => {
  const { registry, driver, leftovers, release } = await setUp();
  await release();
  const opening = createDeferred();
  driver.beforeOpen = () => opening.promise;
  const registering = registry.register(request("r", driver.allocate(64).handle), alice);
  const released = release();
  opening.resolve();
  await registering;
  expect(await released).toEqual({ isClosed: true, pins: 0 });
  expect(leftovers()).toEqual(nothing);
});

test("memory that other regions keep mapped is not told as closed before the last of them goes", async () => {
  const { driver, registry } = createLifecycle();
  const { handle } = driver.allocate(64);
  for (const name of ["a", "b"]) await registry.register(request(name, handle), alice);
  expect(await registry.release("a", { waitMs: 1000 }, alice)).toEqual({ isClosed: false, pins: 0 });
  expect(driver.openMappings).toBe(1);
  expect(await registry.release("b", { waitMs: 1000 }, alice)).toEqual({ isClosed: true, pins: 0 });
  expect(driver.openMappings).toBe(0);
});
