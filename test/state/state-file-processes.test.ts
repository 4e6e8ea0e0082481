import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { LineProcess } from "../../src/cli/line-process.js";
import { lockFile } from "../../src/native/file-lock.js";
import { StateFile } from "../../src/state/state-file.js";
import { StateFileError } from "../../src/state/state-file-error.js";
import { type Allowed, assertAllowed } from "./told-changes.js";

const fixture = fileURLToPath(new URL("../fixtures/state-process.mjs", import.meta.url));
let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "cudashm-state-"));
  path = join(folder, "state");
});
afterEach(() => rmSync(folder, { recursive: true }));

interface Line {
  readonly present?: number[];
  readonly epoch?: number;
  readonly lastGeneration?: number;
  readonly asked?: string;
  readonly told?: string;
  readonly problem?: string;
}

function startWriter(): LineProcess {
  return new LineProcess(process.execPath, [fixture, path]);
}

async function nextLine(writer: LineProcess): Promise<Line> {
  return JSON.parse(await writer.nextLine()) as Line;
}

async function kill(writer: LineProcess): Promise<Line[]> {
  process.kill(writer.pid, "SIGKILL");
  const lines: Line[] = [];
  for await (const line of writer.lines()) lines.push(JSON.parse(line) as Line);
  await writer.exit;
  return lines;
}

test("a second process is told that the first has the file; the first one's death frees it", async () => {
  const first = startWriter();
  await nextLine(first);
  const second = startWriter();
  expect(await nextLine(second)).toEqual({
    problem: `StateFileError: another process holds the lock ${path}.lock: end that process, or use another path`,
  });
  await second.exit;
  const here: unknown = await StateFile.open(path, { lock: lockFile }).catch((error: unknown) => error);
  expect(here).toBeInstanceOf(StateFileError);
  await kill(first);
  const { file, epoch } = await StateFile.open(path, { lock: lockFile });
  expect(epoch).toBe(2n);
  await file.close();
});

test("30 processes killed one after the other: each finds what the ones before it told", async () => {
  let allowed: Allowed = new Map();
  let greatest = 0;
  let told = 0;
  for (let round = 0; round < 30; round++) {
    const writer = startWriter();
    const { present, epoch, lastGeneration } = await nextLine(writer);
    expect(epoch).toBe(round + 1);
    expect(lastGeneration).toBeGreaterThanOrEqual(greatest);
    assertAllowed(present ?? [], allowed);
    const lines: Line[] = [];
    // Now in the middle of the first changes, now after the file was written anew.
    const enough = round % 6 === 5 ? 2500 : 1 + ((round * 37) % 200);
    while (lines.length < enough) lines.push(await nextLine(writer));
    lines.push(...(await kill(writer)));
    const after = new Map<number, Set<boolean>>();
    for (const generation of present ?? []) after.set(generation, new Set([true]));
    for (const line of lines) {
      const change = line.asked ?? line.told ?? expect.fail(line.problem);
      const generation = Number(change.slice(1));
      const isThere = change.startsWith("+");
      const before = line.told === undefined ? (after.get(generation) ?? [false]) : [];
      after.set(generation, new Set([...before, isThere]));
      if (line.told === undefined) continue;
      greatest = Math.max(greatest, generation);
      told++;
    }
    allowed = after;
  }
  expect(told).toBeGreaterThan(5000);
});
