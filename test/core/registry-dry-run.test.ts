import { expect, test } from "vitest";
import { createDeferred } from "../helpers/deferred.js";
import { driverError } from "../helpers/fake-driver.js";
import { alice, createLifecycle, nothing } from "../helpers/lifecycle-harness.js";
import { context, contextWith, expectRejection, request, untilIdle } from "../helpers/registry-harness.js";

function setUp() {
  const harness = createLifecycle();
  const { driver, registry } = harness;
  const { handle } = driver.allocate(4096);
  const tryOut = (fields = {}, caller = context) =>
    registry.register(request("r", handle, { isDryRun: true, ...fields }), caller);
  return { ...harness, handle, tryOut };
}

test("a dry run tells how large the allocation is, and registers nothing", async () => {
  const { tryOut, registry, driver, exporters, journal, changes, clock, leftovers } = setUp();
  const region = await tryOut({ leaseMs: 1000, exporter: exporters.start() });
  expect(region).toMatchObject({
    name: "r",
    state: "registering",
    byteSize: 64n,
    allocationByteSize: 4096n,
    deviceUuid: "GPU-00000000-0000-0000-0000-000000000000",
    registeredAt: clock.now(),
  });
  expect([driver.opens, driver.closes, registry.revision, changes.length]).toEqual([1, 1, 0n, 0]);
  expect(journal.entries).toEqual([]);
  expect([registry.statuses(), leftovers()]).toEqual([[], nothing]);
});

test("a dry run fails as the register would", async () => {
  const { tryOut, driver, exporters, leftovers } = setUp();
  await expectRejection(tryOut({ byteSize: 4097n }), "INVALID_ARGUMENT", /byte_size 4097 exceeds the 4096/);
  const gone = exporters.start();
  exporters.exit(gone);
  await expectRejection(tryOut({ exporter: gone }), "FAILED_PRECONDITION", /there is no process/);
  driver.beforeOpen = () => {
    throw driverError(1, "CUDA_ERROR_INVALID_VALUE");
  };
  await expectRejection(tryOut(), "INVALID_ARGUMENT", /CUDA_ERROR_INVALID_VALUE/);
  expect(leftovers()).toEqual(nothing);
});

test("a dry run of a name that is taken is refused, or tells what is there if that is the same", async () => {
  const { tryOut, registry, handle, clock } = setUp();
  const region = await registry.register(request("r", handle, { leaseMs: 10_000 }), alice);
  await expectRejection(tryOut({}, alice), "ALREADY_EXISTS", /already in manager/);
  clock.advance(5000);
  // It does not start the lease anew.
  expect(await tryOut({ isIdempotent: true }, alice)).toEqual(region);
});

test("a dry run of a replacement leaves what is there as it was", async () => {
  const { tryOut, registry, handle, states, changes } = setUp();
  await registry.register(request("r", handle), context);
  expect(await tryOut({ replaces: 1n })).toMatchObject({ state: "registering", generation: 0n });
  await expectRejection(tryOut({ replaces: 7n }), "FAILED_PRECONDITION", /has generation 1, not 7/);
  const pin = registry.pin("r", null, context);
  await expectRejection(tryOut({ replaces: 1n }), "FAILED_PRECONDITION", /it is used by 1/);
  pin.release();
  expect([states(), changes.length]).toEqual([["r ready"], 1]);
});

test("a register of a name that is being tried out waits for that", async () => {
  const { tryOut, registry, driver, handle, states } = setUp();
  const opening = createDeferred();
  driver.beforeOpen = () => opening.promise;
  const tried = tryOut();
  const registered = registry.register(request("r", handle), context);
  await untilIdle();
  opening.resolve();
  expect([(await tried).state, (await registered).state]).toEqual(["registering", "ready"]);
  expect(states()).toEqual(["r ready"]);
});

test("a caller who leaves a dry run leaves nothing behind", async () => {
  const { tryOut, driver, leftovers } = setUp();
  const opening = createDeferred();
  driver.beforeOpen = () => opening.promise;
  const left = new AbortController();
  const tried = tryOut({}, contextWith(left.signal));
  await untilIdle();
  left.abort();
  await expectRejection(tried, "CANCELLED", "the call was cancelled");
  opening.resolve();
  await untilIdle();
  expect(leftovers()).toEqual(nothing);
});

test("memory that a dry run cannot give back is shown, so that it can be", async () => {
  const { tryOut, registry, driver, states, leftovers } = setUp();
  driver.beforeClose = () => {
    driver.beforeClose = undefined;
    throw driverError(1, "CUDA_ERROR_INVALID_VALUE");
  };
  await expectRejection(tryOut(), "INTERNAL", /failed to close CUDA IPC handle/);
  expect(states()).toEqual(["r close_failed"]);
  await registry.unregister("r", context);
  expect(leftovers()).toEqual(nothing);
});
