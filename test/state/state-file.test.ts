import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { IpcMemHandle } from "../../src/core/handle.js";
import type { RegionRecord } from "../../src/core/journal.js";
import { StateFile } from "../../src/state/state-file.js";
import { createDeferred } from "../helpers/deferred.js";
import { expectRejection } from "../helpers/registry-harness.js";
import { hookedFiles } from "./fault-files.js";
import { generationsIn, openState, plain, recordOf } from "./records.js";

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "cudashm-state-"));
  path = join(folder, "state");
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Counts the calls of the file system by name. */
function countingFiles() {
  const counts: Record<string, number> = {};
  const fileSystem = hookedFiles({
    after: ({ name }) => {
      counts[name] = (counts[name] ?? 0) + 1;
    },
  });
  return { counts, fileSystem };
}

test("a new file has no regions, and counts from the start", async () => {
  const { file, ...found } = await openState(path);
  await file.close();
  expect(found).toEqual({ records: [], epoch: 1n, lastGeneration: 0n, lastRevision: 0n, cutBytes: 0 });
});

test("every field of a region is there again after a restart", async () => {
  const full: RegionRecord = {
    generation: 2n ** 64n - 1n,
    name: 'a "quoted" \\ name, 日本語, \u2028',
    handle: new IpcMemHandle(Uint8Array.from({ length: 64 }, (_, i) => 255 - i)),
    deviceId: 7,
    deviceUuid: "GPU-01234567-89ab-cdef-0123-456789abcdef",
    byteSize: 2n ** 64n - 1n,
    offset: 2n ** 53n + 1n,
    owner: "session:0123",
    session: { id: "0123", secretDigest: "ab".repeat(32), owner: "session:0123", resumeGraceMs: 1500 },
    protocol: "http",
    registeredAt: 1_700_000_000_123,
    leaseMs: 604_800_000,
    exporter: { pid: 4_194_304, startTime: 2n ** 64n - 1n, bootId: "b-o-o-t", pidNamespace: 4_026_531_836n },
    labels: new Map([
      ["__proto__", "x"],
      ["b", "é=1"],
      ["a", ""],
    ]),
  };
  const { file } = await openState(path);
  await file.registered(full);
  await file.registered(recordOf(3));
  await file.close();
  const { file: again, records } = await openState(path);
  await again.close();
  expect(records.map(plain)).toEqual([recordOf(3), full].map(plain));
});

test("regions come in the order of their generations, whatever order they were written in", async () => {
  const { file } = await openState(path);
  for (const generation of [5, 20, 3, 100]) await file.registered(recordOf(generation));
  await file.close();
  expect(await generationsIn(path)).toEqual([3, 5, 20, 100]);
});

test("a region that left is gone, one that was replaced too, one written again is as it was written last", async () => {
  const { file } = await openState(path);
  for (const generation of [1, 2, 3]) await file.registered(recordOf(generation));
  await file.left(1n);
  await file.registered(recordOf(4), 2n);
  await file.registered(recordOf(3, { leaseMs: 5000 }));
  await file.left(99n);
  await file.close();
  const { file: again, records } = await openState(path);
  await again.close();
  expect(records.map(({ generation, leaseMs }) => [generation, leaseMs])).toEqual([
    [3n, 5000],
    [4n, null],
  ]);
});

test("each start has the next epoch", async () => {
  for (const epoch of [1n, 2n, 3n]) {
    const opened = await openState(path);
    await opened.file.close();
    expect(opened.epoch).toBe(epoch);
  }
});

test("the last generation is known even when its region left and its line is compacted away", async () => {
  const { file } = await openState(path);
  await file.registered(recordOf(41));
  await file.left(41n);
  await file.close();
  for (let start = 0; start < 2; start++) {
    const again = await openState(path);
    await again.file.close();
    expect([again.records, again.lastGeneration]).toEqual([[], 41n]);
  }
});

test("no revision comes again after a restart, however many changes there were", async () => {
  const { file, lastRevision } = await openState(path);
  let revision = lastRevision;
  for (; revision < 3_000_000n; revision += 1000n) await file.observe({ revision });
  await file.close();
  const again = await openState(path);
  await again.file.close();
  expect(again.lastRevision).toBeGreaterThanOrEqual(revision);
  expect(again.lastRevision).toBeLessThan(revision + 2_000_000n);
});

test("a change waits for the file only where no revision was set apart for it", async () => {
  const { file } = await openState(path);
  expect(file.observe({ revision: 1n })).toBeUndefined();
  expect(file.observe({ revision: 700_000n })).toBeUndefined();
  await file.registered(recordOf(1));
  expect(file.observe({ revision: 1_000_001n })).toBeUndefined();
  expect(file.observe({ revision: 1_700_001n })).toBeInstanceOf(Promise);
  await file.close();
});

test("what is asked for at once shares one write and one sync", async () => {
  const { counts, fileSystem } = countingFiles();
  const { file } = await openState(path, { fileSystem });
  const before = { ...counts };
  await Promise.all(Array.from({ length: 64 }, (_, i) => file.registered(recordOf(i + 1))));
  expect(counts.datasync).toBe(1);
  expect(counts.write).toBe((before.write ?? 0) + 1);
  await file.close();
});

test("what comes while a sync runs waits for it and shares the next one", async () => {
  const syncing = createDeferred();
  const go = createDeferred();
  let syncs = 0;
  const fileSystem = hookedFiles({
    before: ({ name }) => {
      if (name !== "datasync" || syncs++ > 0) return undefined;
      syncing.resolve();
      return go.promise;
    },
  });
  const { file } = await openState(path, { fileSystem });
  const done: number[] = [];
  const register = (generation: number) =>
    file.registered(recordOf(generation)).then(() => {
      done.push(generation);
    });
  const first = register(1);
  await syncing.promise;
  const rest = [register(2), file.left(1n), register(3)];
  expect(done).toEqual([]);
  go.resolve();
  await first;
  expect(done).toEqual([1]);
  await Promise.all(rest);
  await file.close();
  expect(syncs).toBe(2);
  expect(await generationsIn(path)).toEqual([2, 3]);
});

test("what is asked for the moment before the writing ends is written too", async () => {
  const { file } = await openState(path);
  // From every turn of the microtask queue after an answer, the writer being on its way out at one of them.
  for (let turns = 0; turns < 12; turns++) {
    await file.left(1n);
    for (let turn = 0; turn < turns; turn++) await undefined;
    await file.left(2n);
  }
  await file.close();
});

test("more than one write holds is written in order by several", async () => {
  const { counts, fileSystem } = countingFiles();
  const { file } = await openState(path, { fileSystem });
  const labels = new Map([["k", "x".repeat(20_000)]]);
  await Promise.all(Array.from({ length: 40 }, (_, i) => file.registered(recordOf(i + 1, { labels }))));
  await file.close();
  expect(counts.datasync).toBeGreaterThan(2);
  expect(counts.datasync).toBeLessThan(10);
  expect(await generationsIn(path)).toEqual(Array.from({ length: 40 }, (_, i) => i + 1));
});

test("a region that would make too long a line is refused, and the others with it are not", async () => {
  const { file } = await openState(path);
  const labels = new Map([["k", "x".repeat(64 * 1024)]]);
  const [, refused] = await Promise.allSettled([
    file.registered(recordOf(1)),
    file.registered(recordOf(2, { labels })),
    file.registered(recordOf(3)),
  ]);
  await expectRejection(
    Promise.reject((refused as PromiseRejectedResult).reason),
    "INVALID_ARGUMENT",
    /^region 'region 2' with its labels takes 65\d+ bytes in the state file, at most 65472 are allowed$/,
  );
  await file.close();
  expect(await generationsIn(path)).toEqual([1, 3]);
});

test("the longest line that is written can be read", async () => {
  const { file } = await openState(path);
  const text = (length: number) => new Map([["k", "x".repeat(length)]]);
  let fits = 64 * 1024;
  for (let step = 32 * 1024; step >= 1; step /= 2) {
    const accepted = file.registered(recordOf(1, { labels: text(fits - step) })).then(
      () => true,
      () => false,
    );
    if (!(await accepted)) fits -= step;
  }
  await file.registered(recordOf(2, { labels: text(fits - 1) }));
  await file.close();
  expect(await generationsIn(path)).toEqual([1, 2]);
});

test("close waits for what was asked for, lets the lock go once, and refuses what comes after", async () => {
  let released = 0;
  const lock = async () => ({
    release: async () => {
      released++;
    },
  });
  const { file } = await StateFile.open(path, { lock });
  const registering = file.registered(recordOf(1));
  await Promise.all([file.close(), file.close()]);
  await registering;
  expect(released).toBe(1);
  await expectRejection(file.registered(recordOf(2)), "UNAVAILABLE", "the state file is closed");
  await expectRejection(file.left(1n), "UNAVAILABLE", "the state file is closed");
  expect(await generationsIn(path)).toEqual([1]);
});

test("the file is text, a line a record, that says what it is in the first", async () => {
  const { file } = await openState(path);
  await file.registered(recordOf(1));
  await file.left(1n);
  await file.close();
  expect(readFileSync(path, "utf8").split("\n")).toEqual([
    "cudashm-state 1",
    expect.stringMatching(/^[0-9a-f]{16} 0 \{"counters":\{"epoch":"1",/),
    expect.stringMatching(/^[0-9a-f]{16} \d+ \{"registered":\{"generation":"1",.*"handle":"AQEB/),
    expect.stringMatching(/^[0-9a-f]{16} \d+ \{"left":"1"\}$/),
    "",
  ]);
});

test("a file that somebody removed is there again with the next change, and all that it held", async () => {
  const { file } = await openState(path);
  await file.registered(recordOf(1));
  rmSync(path);
  await file.registered(recordOf(2));
  await file.close();
  expect(await generationsIn(path)).toEqual([1, 2]);
});
