import fc from "fast-check";
import { expect, test } from "vitest";
import { LifecycleRun, type LifecycleSchedule, lifecycleSchedule } from "../helpers/lifecycle-run.js";
import { untilIdle } from "../helpers/registry-harness.js";

async function runThrough(schedule: LifecycleSchedule): Promise<LifecycleRun> {
  const run = new LifecycleRun(schedule);
  for (const [step, turns] of schedule.steps) {
    run.perform(step);
    if (turns === null) {
      await untilIdle();
      run.check();
    } else for (let turn = 0; turn < turns; turn++) await null;
  }
  return run;
}

const gone = { mappings: 0, open: 0, timers: 0, watches: 0, regions: [] };
const numRuns = 400;

test("whatever the order of calls, leases, exits, sessions and answers, nothing is left of what goes", async () => {
  await fc.assert(
    fc.asyncProperty(lifecycleSchedule, async (schedule) => {
      const run = await runThrough(schedule);
      await run.recover();
      expect(await run.end()).toEqual({ ...gone, written: [] });
      run.stopReading();
      expect(run.faults).toEqual([]);
    }),
    { numRuns },
  );
});

test("whatever is under way when the registry stops, the driver gets all mappings back", async () => {
  await fc.assert(
    fc.asyncProperty(lifecycleSchedule, async (schedule) => {
      const run = await runThrough(schedule);
      expect(await run.stop()).toEqual(gone);
      run.stopReading();
      expect(run.faults).toEqual([]);
    }),
    { numRuns },
  );
});
