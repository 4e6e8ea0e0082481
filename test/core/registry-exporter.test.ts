import { expect, test } from "vitest";
import { FakeExporters } from "../helpers/fake-exporters.js";
import { createLifecycle, nothing } from "../helpers/lifecycle-harness.js";
import { context, createHarness, expectRejection, request, untilIdle } from "../helpers/registry-harness.js";

async function setUp(options: Parameters<typeof createLifecycle>[0] = {}) {
  const harness = createLifecycle(options);
  const { driver, registry, clock, exporters } = harness;
  const exporter = exporters.start();
  const { handle } = driver.allocate(64);
  const register = (name: string) => registry.register(request(name, handle, { exporter }), context);
  const pass = async (ms: number) => {
    clock.advance(ms);
    await untilIdle();
  };
  return { ...harness, exporter, register, pass };
}

test("a region whose exporter exits is an orphan, can still be used, and goes after a grace", async () => {
  const { register, exporters, exporter, registry, states, pass, changes, leftovers } = await setUp();
  await register("r");
  expect(registry.status("r").exporter).toEqual(exporter);
  exporters.exit(exporter);
  expect(registry.status("r")).toMatchObject({ state: "orphaned", reason: "exporter_exited" });
  const pin = registry.pin("r", null, context);
  await pin.read(0n, new Uint8Array(64));
  pin.release();
  await pass(29_999);
  expect(states()).toEqual(["r orphaned"]);
  await pass(1);
  expect(states()).toEqual([]);
  expect(changes.map(({ kind, reason }) => `${kind} ${reason}`)).toEqual([
    "registered requested",
    "orphaned exporter_exited",
    "unregistered exporter_exited",
  ]);
  expect(leftovers()).toEqual(nothing);
});

test("without a grace an orphan goes at once", async () => {
  const { register, exporters, exporter, states, pass, leftovers } = await setUp({ orphanGraceMs: 0 });
  await register("r");
  exporters.exit(exporter);
  await pass(0);
  expect(states()).toEqual([]);
  expect(leftovers()).toEqual(nothing);
});

test("an orphan whose unregister is asked for goes without its grace", async () => {
  const { register, exporters, exporter, registry, leftovers } = await setUp();
  await register("r");
  exporters.exit(exporter);
  await registry.unregister("r", context);
  expect(leftovers()).toEqual(nothing);
});

test("an orphan that is pinned when its grace is over drains", async () => {
  const { register, exporters, exporter, registry, pass, states, leftovers } = await setUp();
  await register("r");
  const pin = registry.pin("r", null, context);
  exporters.exit(exporter);
  await pass(30_000);
  expect(states()).toEqual(["r draining"]);
  pin.release();
  await untilIdle();
  expect(leftovers()).toEqual(nothing);
});

test("all regions of one exporter are orphans when it exits, and no others", async () => {
  const { register, exporters, exporter, driver, registry, states } = await setUp();
  await register("a");
  await register("b");
  await registry.register(request("c", driver.allocate(64).handle, { exporter: exporters.start() }), context);
  exporters.exit(exporter);
  expect(states()).toEqual(["a orphaned", "b orphaned", "c ready"]);
  expect(exporters.watches).toBe(1);
});

test("an exporter that is not there is refused before the driver is asked", async () => {
  const { register, exporters, exporter, driver, leftovers } = await setUp();
  exporters.exit(exporter);
  await expectRejection(
    register("r"),
    "FAILED_PRECONDITION",
    `failed to register shared memory region 'r': there is no process ${exporter.pid}`,
  );
  expect(driver.openCalls).toBe(0);
  expect(leftovers()).toEqual(nothing);
});

test("a registry that cannot watch exporters refuses to take their names", async () => {
  const { driver, registry } = createHarness();
  const exporter = new FakeExporters().start();
  await expectRejection(
    registry.register(request("r", driver.allocate(64).handle, { exporter }), context),
    "UNIMPLEMENTED",
    /cannot watch exporters; register without one/,
  );
  expect([registry.statuses(), driver.openCalls]).toEqual([[], 0]);
});

test("an exporter that exits during the register makes an orphan of it at once, with one grace", async () => {
  const { register, exporters, exporter, driver, states, changes, clock, pass, leftovers } = await setUp();
  driver.beforeOpen = () => exporters.exit(exporter);
  expect((await register("r")).state).toBe("ready");
  expect(states()).toEqual(["r orphaned"]);
  expect(changes.map(({ kind }) => kind)).toEqual(["registered", "orphaned"]);
  expect(clock.pending).toBe(1);
  await pass(30_000);
  expect(leftovers()).toEqual(nothing);
});

test("an exporter that exits as soon as the region is there makes an orphan of it once", async () => {
  const { register, exporters, exporter, registry, changes, clock } = await setUp();
  const exited = registry.waitFor("r", 1000, context).then(() => exporters.exit(exporter));
  await register("r");
  await exited;
  expect(changes.map(({ kind }) => kind)).toEqual(["registered", "orphaned"]);
  expect(clock.pending).toBe(1);
});

test("an exporter that exits while a register of its memory fails leaves nothing behind", async () => {
  const { register, exporters, exporter, driver, changes, leftovers } = await setUp();
  driver.beforeOpen = () => {
    exporters.exit(exporter);
    throw new Error("refused");
  };
  await expectRejection(register("r"), "INTERNAL", /internal error/);
  expect(changes).toEqual([]);
  expect(leftovers()).toEqual(nothing);
});

test("an exporter that exits while its region goes changes nothing", async () => {
  const { register, exporters, exporter, registry, driver, changes, leftovers } = await setUp();
  await register("r");
  driver.beforeClose = () => exporters.exit(exporter);
  await registry.unregister("r", context);
  expect(changes.map(({ kind }) => kind)).toEqual(["registered", "unregistered"]);
  expect(leftovers()).toEqual(nothing);
});

test("an orphan's end that cannot be written down is tried again, also if its lease is renewed meanwhile", async () => {
  const { exporters, exporter, registry, driver, journal, states, pass, clock, leftovers } = await setUp();
  const { handle } = driver.allocate(64);
  await registry.register(request("r", handle, { exporter, leaseMs: 600_000 }), context);
  exporters.exit(exporter);
  journal.isFull = true;
  await pass(30_000);
  await registry.renew("r", {}, context);
  expect(clock.pending).toBe(2);
  journal.isFull = false;
  await pass(5000);
  expect(states()).toEqual([]);
  expect(leftovers()).toEqual(nothing);
});

test("whoever is looked for while the registry stops is not waited for in vain", async () => {
  const { register, exporters, registry, leftovers } = await setUp();
  let found = () => {};
  exporters.beforeWatch = () =>
    new Promise((resolve) => {
      found = resolve;
    });
  const registering = register("r");
  await untilIdle();
  const closed = registry.close();
  await expectRejection(registering, "UNAVAILABLE", "Server exiting");
  found();
  await closed;
  expect(leftovers()).toEqual(nothing);
});
