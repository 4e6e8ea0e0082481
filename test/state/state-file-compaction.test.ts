import { expect, test } from "vitest";
import type { RegionRecord } from "../../src/core/journal.js";
import type { StateFile } from "../../src/state/state-file.js";
import { type FileCall, hookedFiles, systemError } from "./fault-files.js";
import { MemoryDisk } from "./memory-disk.js";
import { generationsIn, openState, recordOf } from "./records.js";

async function setUp(options: { onCompactionError?: (error: unknown) => void } = {}) {
  const disk = new MemoryDisk();
  const calls: FileCall[] = [];
  let fault: (call: FileCall) => void = () => {};
  const fileSystem = hookedFiles(
    {
      before: (call) => {
        calls.push(call);
        fault(call);
      },
    },
    disk,
  );
  const { file } = await openState(disk.path, { fileSystem, ...options });
  calls.length = 0;
  return {
    disk,
    file,
    calls,
    renames: () => calls.filter(({ name }) => name === "rename").length,
    lines: () => disk.bytes.toString("latin1").split("\n").length - 1,
    failWhen: (next: (call: FileCall) => void) => {
      fault = next;
    },
  };
}

async function registerEach(file: StateFile, from: number, to: number, fields: Partial<RegionRecord> = {}) {
  const generations = Array.from({ length: to - from + 1 }, (_, i) => from + i);
  await Promise.all(generations.map((generation) => file.registered(recordOf(generation, fields))));
}

// It is written anew after the answer that made it too long, and the next call waits for that.

test("regions that come and go leave a file of about a thousand lines, rarely written anew", async () => {
  const { disk, file, renames, lines } = await setUp();
  for (let generation = 1; generation <= 3000; generation++) {
    await file.registered(recordOf(generation));
    if (generation % 500 !== 0) await file.left(BigInt(generation));
    expect(lines()).toBeLessThanOrEqual(1001);
  }
  expect(renames()).toBe(6);
  await file.close();
  expect(await generationsIn(disk.path, { fileSystem: disk })).toEqual([500, 1000, 1500, 2000, 2500, 3000]);
});

test("with many regions it is written anew at four lines a region", async () => {
  const { disk, file, renames, lines } = await setUp();
  await registerEach(file, 1, 600);
  for (let round = 0; round < 3; round++) await registerEach(file, 1, 590, { leaseMs: 1000 + round });
  await registerEach(file, 591, 591);
  expect([renames(), lines()]).toEqual([0, 2 + 600 + 3 * 590 + 1]);
  await registerEach(file, 1, 27);
  await file.left(9999n);
  expect([renames(), lines()]).toEqual([0, 2401]);
  await file.left(9999n);
  expect([renames(), lines()]).toEqual([1, 603]);
  await file.close();
  expect((await generationsIn(disk.path, { fileSystem: disk })).length).toBe(600);
});

test("no write of a new file takes longer than a slice to encode, so the event loop is never held for long", async () => {
  const disk = new MemoryDisk();
  let largest = 0;
  const fileSystem = hookedFiles({}, disk);
  const { open } = fileSystem;
  fileSystem.open = async (...args) => {
    const opened = await open(...args);
    const { write } = opened;
    opened.write = (from, offset, length, position) => {
      largest = Math.max(largest, length);
      return write(from, offset, length, position);
    };
    return opened;
  };
  const { file } = await openState(disk.path, { fileSystem });
  await registerEach(file, 1, 3000);
  await registerEach(file, 1, 3000);
  await registerEach(file, 1, 3000);
  await registerEach(file, 1, 3100);
  await file.close();
  expect(largest).toBeGreaterThan(100 * 1024);
  expect(largest).toBeLessThan(192 * 1024);
});

test.each(["unlink", "open", "write", "chmod", "sync", "rename", "close"] as const)(
  "a compaction that fails at its %s loses nothing, is told, and is tried again later",
  async (name) => {
    const problems: unknown[] = [];
    const { disk, file, failWhen, lines, calls } = await setUp({
      onCompactionError: (error) => problems.push(error),
    });
    await registerEach(file, 1, 10);
    for (let n = 0; n < 980; n++) await file.left(99n);
    expect(lines()).toBe(992);
    let isBroken = true;
    failWhen((call) => {
      // A write of the new file, which alone has its mode set.
      const isOfNew = name !== "write" || calls.some((each) => each.name === "chmod");
      if (isBroken && call.name === name && isOfNew) throw systemError("EIO");
    });
    calls.length = 0;
    for (let n = 0; n < 9; n++) await file.left(99n);
    // The answer comes before the compaction; the next one waits for it.
    await file.registered(recordOf(11)).catch(() => {});
    isBroken = false;
    await file.registered(recordOf(12));
    expect(problems).toEqual([expect.objectContaining({ code: "EIO" })]);
    for (let n = 0; n < 1100; n++) await file.left(99n);
    expect(lines()).toBeLessThan(1000);
    await file.close();
    const found = await generationsIn(disk.path, { fileSystem: disk });
    expect(found.filter((generation) => generation !== 11)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12]);
  },
);
