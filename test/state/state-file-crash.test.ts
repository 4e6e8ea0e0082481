import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { hookedFiles, systemError } from "./fault-files.js";
import { MemoryDisk } from "./memory-disk.js";
import { generationsIn, openState } from "./records.js";
import { type Allowed, assertAllowed, ToldChanges } from "./told-changes.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "cudashm-state-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** As many lines as make the next one the last before the file is written anew. */
async function fillUp(told: ToldChanges): Promise<void> {
  await Promise.all(Array.from({ length: 996 }, () => told.leave(999)));
}

test("killed after any step of any call, a start finds what was told", async () => {
  const live = join(folder, "live");
  mkdirSync(live);
  const copies: { readonly path: string; readonly step: string; readonly allowed: Allowed }[] = [];
  let told: ToldChanges | undefined;
  let isCopying = true;
  const fileSystem = hookedFiles({
    // In pieces, so that there is a copy with half a line too.
    maxWrite: 100,
    after: ({ name }) => {
      if (!isCopying) return;
      const copy = join(folder, String(copies.length));
      cpSync(live, copy, { recursive: true });
      copies.push({ path: join(copy, "state"), step: name, allowed: told?.allowed() ?? new Map() });
    },
  });
  const { file } = await openState(join(live, "state"), { fileSystem });
  told = new ToldChanges(file);
  await Promise.all([told.register(1), told.register(2), told.register(3)]);
  await told.leave(1);
  await Promise.all([told.register(4, 2), told.register(5), told.leave(3), told.register(5)]);
  isCopying = false;
  await fillUp(told);
  isCopying = true;
  await Promise.all([told.register(6), told.leave(4), told.register(7)]);
  await told.leave(6);
  await file.close();
  expect(told.count("refused")).toBe(0);
  expect(copies.filter(({ step }) => step === "rename")).toHaveLength(2);
  expect(copies.length).toBeGreaterThan(50);
  for (const { path, allowed } of copies) assertAllowed(await generationsIn(path), allowed);
  expect(await generationsIn(join(live, "state"))).toEqual([5, 7]);
});

const generation = fc.integer({ min: 1, max: 8 });
const step = fc.record({
  change: fc.oneof(
    fc.record({ do: fc.constant("register" as const), generation }),
    fc.record({ do: fc.constant("replace" as const), generation, replaces: generation }),
    fc.record({ do: fc.constant("leave" as const), generation }),
  ),
  waits: fc.boolean(),
});
const run = fc.record({
  steps: fc.array(step, { minLength: 50, maxLength: 50 }),
  chance: fc.integer({ min: 1, max: 2 ** 31 - 2 }),
  failures: fc.constantFrom(0, 0, 20, 5),
  isFull: fc.boolean(),
});

/** Numbers by chance, the same for the same seed. */
function chanceFrom(seed: number): (n: number) => number {
  let state = seed;
  return (n) => {
    state = (state * 48_271) % (2 ** 31 - 1);
    return state % n;
  };
}

test("10,000 changes with failures in between: after a kill or a power failure at any moment, a start finds what was told", async () => {
  const seen = { done: 0, refused: 0, crashes: 0, compactions: 0 };
  await fc.assert(
    fc.asyncProperty(run, async ({ steps, chance: seed, failures, isFull }) => {
      const chance = chanceFrom(seed);
      const disk = new MemoryDisk();
      const crashes: { readonly disk: MemoryDisk; readonly allowed: Allowed }[] = [];
      let told: ToldChanges | undefined;
      const fileSystem = hookedFiles(
        {
          maxWrite: 200 + chance(2000),
          before: () => {
            if (told !== undefined && failures > 0 && chance(failures) === 0) throw systemError("EIO");
          },
          after: ({ name }) => {
            if (name === "rename") seen.compactions++;
            if (chance(8) > 0) return;
            const crashed = chance(2) === 0 ? MemoryDisk.with(disk.bytes) : disk.afterPowerFailure(chance);
            crashes.push({ disk: crashed, allowed: told?.allowed() ?? new Map() });
          },
        },
        disk,
      );
      const { file } = await openState(disk.path, { fileSystem });
      told = new ToldChanges(file);
      if (isFull) await fillUp(told);
      for (const { change, waits } of steps) {
        const answer =
          change.do === "leave"
            ? told.leave(change.generation)
            : told.register(change.generation, change.do === "replace" ? change.replaces : undefined);
        if (waits) await answer;
      }
      await file.close().catch(() => {});
      for (const { disk: crashed, allowed } of crashes) {
        const found = await generationsIn(crashed.path, { fileSystem: crashed });
        assertAllowed(found, allowed);
        expect(await generationsIn(crashed.path, { fileSystem: crashed })).toEqual(found);
      }
      seen.done += told.count("done");
      seen.refused += told.count("refused");
      seen.crashes += crashes.length;
    }),
    { numRuns: 200, seed: 5 },
  );
  // Or it would show nothing.
  for (const count of [seen.done, seen.refused, seen.crashes, seen.compactions])
    expect(count).toBeGreaterThan(500);
});
