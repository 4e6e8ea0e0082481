import fc from "fast-check";
import { expect, test } from "vitest";
import type { WatchEvent } from "../../src/core/change-history.js";
import type { CallContext } from "../../src/core/region.js";
import { admin, alice, bob, createLifecycle } from "../helpers/lifecycle-harness.js";
import { context, expectRejection, request, untilIdle } from "../helpers/registry-harness.js";

type Lifecycle = ReturnType<typeof createLifecycle>;

/** Collects what the caller is told until `stop` is called. */
function collect({ registry }: Lifecycle, caller: CallContext = context, fromRevision?: bigint) {
  const left = new AbortController();
  const told: string[] = [];
  const tell = ({ kind, ...event }: WatchEvent) =>
    "change" in event
      ? `${event.change.kind} ${event.change.region.name} (${event.change.reason})`
      : `${kind} ${"from" in event ? event.from : event.revision}`;
  const done = (async () => {
    for await (const event of registry.watch({ fromRevision }, { ...caller, signal: left.signal })) {
      told.push(tell(event));
    }
  })().catch(() => {});
  const stop = async () => {
    left.abort();
    await done;
  };
  return { told, stop };
}

test("every change is told with its reason", async () => {
  const harness = createLifecycle();
  const { driver, registry, exporters, clock } = harness;
  const { told, stop } = collect(harness);
  const exporter = exporters.start();
  const { handle } = driver.allocate(64);
  await registry.register(request("a", handle, { exporter }), context);
  await registry.register(request("b", handle, { leaseMs: 1000 }), context);
  const pin = registry.pin("b", null, context);
  clock.advance(1000);
  await untilIdle();
  pin.release();
  exporters.exit(exporter);
  await registry.release("a", { isForced: true }, context);
  await untilIdle();
  await stop();
  expect(told).toEqual([
    "start 0",
    "registered a (requested)",
    "registered b (requested)",
    "draining b (lease_expired)",
    "orphaned a (exporter_exited)",
    "unregistered b (lease_expired)",
    "unregistered a (forced)",
  ]);
});

test("where access is by owner each is told of his own regions", async () => {
  const harness = createLifecycle({ policy: { access: "owner", unregisterAll: "all" } });
  const { driver, registry } = harness;
  const watchers = [alice, bob, admin].map((caller) => collect(harness, caller));
  await registry.register(request("a", driver.allocate(64).handle), alice);
  await registry.register(request("b", driver.allocate(64).handle), bob);
  await untilIdle();
  for (const { stop } of watchers) await stop();
  expect(watchers.map(({ told }) => told.slice(1))).toEqual([
    ["registered a (requested)"],
    ["registered b (requested)"],
    ["registered a (requested)", "registered b (requested)"],
  ]);
});

test("a register that an observer refused is told to nobody, and the watch goes on", async () => {
  const harness = createLifecycle({
    observers: [
      ({ region: { name } }) => {
        if (name === "bad") throw new Error("no");
      },
    ],
    onObserverError: () => {},
  });
  const { driver, registry } = harness;
  const { handle } = driver.allocate(64);
  await expectRejection(registry.register(request("bad", handle), context), "INTERNAL", /internal error/);
  expect(registry.revision).toBe(2n);
  const { revision } = await registry.list({}, context);
  const { told, stop } = collect(harness, context, revision + 1n);
  await registry.register(request("good", handle), context);
  await untilIdle();
  await stop();
  expect(told).toEqual(["start 2", "registered good (requested)"]);
});

test("a list and the changes after its revision always come to what the next list shows", async () => {
  const names = ["a", "b", "c"];
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ name: fc.constantFrom(...names), isBad: fc.boolean() }), { maxLength: 30 }),
      fc.nat(29),
      async (acts, listAt) => {
        const { driver, registry } = createLifecycle({
          observers: [
            ({ kind, region: { labels } }) => {
              if (kind === "registered" && labels.size > 0) throw new Error("no");
            },
          ],
        });
        const { handle } = driver.allocate(64);
        const left = new AbortController();
        const shown = new Map<string, bigint>();
        let reading: Promise<void> = Promise.resolve();
        for (const [index, { name, isBad }] of acts.entries()) {
          if (index === listAt) {
            const { regions, revision } = await registry.list({}, context);
            for (const region of regions) shown.set(region.name, region.generation);
            const options = { fromRevision: revision + 1n };
            reading = (async () => {
              for await (const event of registry.watch(options, { ...context, signal: left.signal })) {
                if (event.kind === "gap") throw new Error("there was a gap");
                if (event.kind !== "change") continue;
                const { kind, region } = event.change;
                if (kind === "registered") shown.set(region.name, region.generation);
                else shown.delete(region.name);
              }
            })().catch((error) => {
              if (!left.signal.aborted) throw error;
            });
          }
          const labels = new Map(isBad ? [["bad", ""]] : []);
          if (registry.statuses().some((region) => region.name === name)) {
            await registry.unregister(name, context);
          } else await registry.register(request(name, handle, { labels }), context).catch(() => {});
        }
        await untilIdle();
        left.abort();
        await reading;
        if (listAt >= acts.length) return;
        expect([...shown].sort()).toEqual(
          registry.statuses().map(({ name, generation }) => [name, generation]),
        );
      },
    ),
    { numRuns: 200 },
  );
});
