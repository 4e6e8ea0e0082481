import { expect, test } from "vitest";
import { admin, createLifecycle, nothing, within } from "../helpers/lifecycle-harness.js";
import { context, request, untilIdle } from "../helpers/registry-harness.js";

test("10,000 regions of every kind that come and go leave nothing behind", async () => {
  const { driver, registry, exporters, clock, journal, openSession, leftovers } = createLifecycle();
  const { handle } = driver.allocate(64);
  for (let index = 0; index < 2500; index++) {
    const labels = new Map([["n", String(index)]]);
    const exporter = exporters.start();
    const hold = openSession();
    await registry.register(request(`a${index}`, handle, { leaseMs: 1000, labels }), context);
    await registry.register(request(`b${index}`, handle, { exporter, labels }), context);
    await registry.register(request(`c${index}`, handle, { leaseMs: 60_000 }), within(hold));
    const { generation } = await registry.register(request(`d${index}`, handle), context);
    await registry.register(request(`d${index}`, handle, { replaces: generation, leaseMs: 1000 }), admin);
    registry.pin(`d${index}`, null, admin).release();
    exporters.exit(exporter);
    hold.end();
    clock.advance(30_000);
    await untilIdle();
  }
  expect(registry.statuses()).toEqual([]);
  expect([leftovers(), journal.records.size]).toEqual([nothing, 0]);
});
