import { expect, test } from "vitest";
import type { RegistryChange, RegistryObserver } from "../../src/core/region.js";
import { RegionRegistry } from "../../src/core/registry.js";
import { createDeferred } from "../helpers/deferred.js";
import { FakeClock } from "../helpers/fake-clock.js";
import { FakeDriver } from "../helpers/fake-driver.js";
import {
  context,
  contextWith,
  createHarness,
  expectRejection,
  rejection,
  request,
  untilIdle,
} from "../helpers/registry-harness.js";

test("every change is told once, in order, with a revision that grows by one", async () => {
  const { driver, registry, changes } = createHarness({ clock: new FakeClock(77) });
  const { handle } = driver.allocate(64);
  const asker = { ...context, owner: "alice", protocol: "grpc", requestId: "q1" } as const;
  const region = await registry.register(request("r", handle), asker);
  await registry.unregister("r", context);
  expect(changes).toEqual([
    {
      kind: "registered",
      reason: "requested",
      region,
      revision: 1n,
      context: asker,
      durationMs: expect.any(Number),
    },
    {
      kind: "unregistered",
      reason: "requested",
      region,
      revision: 2n,
      context,
      durationMs: expect.any(Number),
    },
  ]);
  expect(region).toMatchObject({ owner: "alice", protocol: "grpc", registeredAt: 77 });
  for (const { durationMs } of changes) expect(durationMs).toBeGreaterThanOrEqual(0);
});

test("a change is visible only when every observer, one after the other, has taken it", async () => {
  const steps: string[] = [];
  const gates = [createDeferred(), createDeferred()];
  const observers = gates.map(
    ({ promise }, i): RegistryObserver =>
      async (change) => {
        steps.push(`${i} told of ${change.region.name}`);
        await promise;
        steps.push(`${i} done`);
      },
  );
  const driver = new FakeDriver();
  const registry = new RegionRegistry({ driver, observers });
  const register = registry.register(request("a", driver.allocate(64).handle), context);
  const other = registry.register(request("b", driver.allocate(64).handle), context);
  await untilIdle();
  expect(steps).toEqual(["0 told of a"]);
  expect([registry.revision, registry.statuses()]).toEqual([0n, []]);
  gates[0]?.resolve();
  await untilIdle();
  expect(steps).toEqual(["0 told of a", "0 done", "1 told of a"]);
  expect(registry.revision).toBe(0n);
  gates[1]?.resolve();
  await Promise.all([register, other]);
  expect(steps.slice(3)).toEqual(["1 done", "0 told of b", "0 done", "1 told of b", "1 done"]);
  expect(registry.revision).toBe(2n);
});

test("while an observer takes its time, the driver is kept busy and pins are served", async () => {
  const gate = createDeferred();
  const driver = new FakeDriver();
  let told = 0;
  const registry = new RegionRegistry({
    driver,
    observers: [() => (told++ === 1 ? gate.promise : undefined)],
  });
  await registry.register(request("a", driver.allocate(64).handle), context);
  const slow = registry.register(request("b", driver.allocate(64).handle), context);
  const next = registry.register(request("c", driver.allocate(64).handle), context);
  await untilIdle();
  expect(driver.opens).toBe(3);
  registry.pin("a", null, context).release();
  gate.resolve();
  await Promise.all([slow, next]);
  expect(registry.statuses()).toHaveLength(3);
});

test.each([
  ["rejects", () => Promise.reject(new Error("journal is full"))],
  [
    "throws",
    () => {
      throw new Error("journal is full");
    },
  ],
])("a register that an observer %s is undone, and the observers hear that too", async (_, refuse) => {
  const { driver, registry, changes } = createHarness({
    observers: [(change) => (change.kind === "registered" ? refuse() : undefined)],
  });
  const { handle } = driver.allocate(64);
  const error = await expectRejection(
    registry.register(request("r", handle), context),
    "INTERNAL",
    "failed to register shared memory region 'r': internal error; the cause is in the service's log",
  );
  expect(error.cause).toEqual(new Error("journal is full"));
  expect([driver.opens, driver.closes, registry.mappings, registry.statuses()]).toEqual([1, 1, 0, []]);
  expect(changes.map(({ kind, revision, region }) => [kind, revision, region.generation])).toEqual([
    ["registered", 1n, 1n],
    ["unregistered", 2n, 1n],
  ]);
  expect(registry.revision).toBe(2n);
  expect((await rejection(registry.register(request("r", handle), context))).code).toBe("INTERNAL");
});

test("on the way out an observer's refusal is reported and changes nothing else", async () => {
  const reported: [unknown, RegistryChange][] = [];
  const refusal = new Error("journal is full");
  const { driver, registry, changes } = createHarness({
    observers: [
      ({ kind }) => {
        if (kind === "unregistered") throw refusal;
      },
    ],
    onObserverError: (error, change) => reported.push([error, change]),
  });
  await registry.register(request("r", driver.allocate(64).handle), context);
  await registry.unregister("r", context);
  expect(reported).toEqual([[refusal, changes.at(-1)]]);
  expect([registry.mappings, registry.statuses()]).toEqual([0, []]);
});

test("without a reporter an observer's refusal is a process warning", async () => {
  const driver = new FakeDriver();
  const registry = new RegionRegistry({
    driver,
    observers: [
      ({ kind }) => {
        if (kind === "unregistered") throw new Error("journal is full");
      },
    ],
  });
  await registry.register(request("r", driver.allocate(64).handle), context);
  const warned = new Promise<Error>((resolve) => process.once("warning", resolve));
  await registry.unregister("r", context);
  expect((await warned).message).toBe("journal is full");
});

test("an observer may start a call of the registry, which takes its turn afterwards", async () => {
  const driver = new FakeDriver();
  const started: Promise<void>[] = [];
  const revisions: bigint[] = [];
  const registry: RegionRegistry = new RegionRegistry({
    driver,
    observers: [
      ({ kind, revision }) => {
        revisions.push(revision);
        if (kind === "registered" && revision === 2n) started.push(registry.unregister("shared", context));
      },
    ],
  });
  const { handle } = driver.allocate(64);
  await registry.register(request("shared", handle), context);
  await registry.register(request("other", handle), context);
  await Promise.all(started);
  expect(revisions).toEqual([1n, 2n, 3n]);
  expect(registry.statuses().map(({ name }) => name)).toEqual(["other"]);
});

test("a register aborted while it waits for its turn is told to nobody and undone", async () => {
  const gate = createDeferred();
  const told: string[] = [];
  const driver = new FakeDriver();
  const registry = new RegionRegistry({
    driver,
    observers: [
      async ({ region }) => {
        told.push(region.name);
        await gate.promise;
      },
    ],
  });
  const slow = registry.register(request("slow", driver.allocate(64).handle), context);
  const client = new AbortController();
  const waiting = registry.register(
    request("waiting", driver.allocate(64).handle),
    contextWith(client.signal),
  );
  await untilIdle();
  client.abort();
  expect((await rejection(waiting)).code).toBe("CANCELLED");
  gate.resolve();
  await slow;
  await registry.unregister("waiting", context);
  expect([told, driver.opens, driver.closes]).toEqual([["slow"], 2, 1]);
});

test("an abort once the observers are being told comes too late: the register is answered as done", async () => {
  const gate = createDeferred();
  const driver = new FakeDriver();
  const registry = new RegionRegistry({ driver, observers: [() => gate.promise] });
  const client = new AbortController();
  const register = registry.register(request("r", driver.allocate(64).handle), contextWith(client.signal));
  await untilIdle();
  client.abort();
  gate.resolve();
  expect((await register).state).toBe("ready");
  expect(registry.mappings).toBe(1);
});

test("the blocks of the list are the same array until a region comes or goes", async () => {
  const { driver, registry } = createHarness();
  await registry.register(request("r", driver.allocate(64).handle), context);
  const before = registry.blocks();
  using _pin = registry.pin("r", null, context);
  await rejection(registry.register(request("r", driver.allocate(64).handle), context));
  await registry.unregister("r", context);
  expect(registry.status("r")).toMatchObject({ state: "draining", pins: 1 });
  expect(registry.blocks()).toBe(before);
  await registry.register(request("s", driver.allocate(64).handle), context);
  expect(registry.blocks()).not.toBe(before);
  const names = (blocks: typeof before) => blocks.flatMap(({ regions }) => regions.map(({ name }) => name));
  expect([names(before), names(registry.blocks())]).toEqual([["r"], ["r", "s"]]);
});

test("pins that come and go while a slow observer is told of an unregister are counted", async () => {
  const gate = createDeferred();
  const { driver, registry } = createHarness({
    observers: [({ kind }) => (kind === "draining" ? gate.promise : undefined)],
  });
  await registry.register(request("r", driver.allocate(64).handle), context);
  const pins = [registry.pin("r", null, context), registry.pin("r", null, context)];
  const unregister = registry.unregister("r", context);
  pins[0]?.release();
  gate.resolve();
  await unregister;
  expect([registry.status("r").state, registry.status("r").pins]).toEqual(["draining", 1]);
  expect(registry.statuses()).toEqual([registry.status("r")]);
  pins[1]?.release();
  await untilIdle();
  expect([registry.mappings, registry.statuses()]).toEqual([0, []]);
});

test("a region whose last pin went while a slow observer was told of its unregister is closed", async () => {
  const gate = createDeferred();
  const { driver, registry, kinds } = createHarness({
    observers: [({ kind }) => (kind === "draining" ? gate.promise : undefined)],
  });
  await registry.register(request("r", driver.allocate(64).handle), context);
  const pin = registry.pin("r", null, context);
  const unregister = registry.unregister("r", context);
  pin.release();
  gate.resolve();
  await unregister;
  await untilIdle();
  expect([driver.closes, kinds()]).toEqual([1, ["registered r", "draining r", "unregistered r"]]);
});
