import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { IpcMemHandle } from "../../src/core/handle.js";
import type { RegionRecord } from "../../src/core/journal.js";
import { decodeEntry, encodeEntry } from "../../src/state/entry.js";
import { encodeLine } from "../../src/state/line.js";
import { StateFileError } from "../../src/state/state-file-error.js";
import { MemoryDisk } from "../state/memory-disk.js";
import { openState, plain, recordOf } from "../state/records.js";
import { holds, timeout } from "./budget.js";
import { mutated, named } from "./mutations.js";

const handleOf = (generation: number) =>
  new IpcMemHandle(Buffer.alloc(64, `handle of ${generation}, which is a secret; `));

const records = Array.from({ length: 8 }, (_, i) =>
  recordOf(i + 1, {
    name: i % 2 === 0 ? `region ${i}` : "é\n\u2028\ud83d\ude00".slice(0, 1 + i),
    handle: handleOf(i + 1),
    byteSize: 2n ** 64n - 1n,
    labels: new Map([["__proto__", "x"]]),
    leaseMs: i % 3 === 0 ? 1000 : null,
    exporter: i % 2 === 0 ? { pid: 1 + i, startTime: 7n, bootId: "boot", pidNamespace: 3n } : null,
    session: i === 4 ? { id: "s", secretDigest: "ab", owner: "anonymous", resumeGraceMs: 5 } : null,
  }),
);

/** A state file as the service leaves it, and the regions that there were after each of its entries. */
interface Real {
  readonly bytes: Buffer;
  readonly histories: ReadonlySet<string>;
}

const told = (found: readonly RegionRecord[]) =>
  JSON.stringify(found.map(plain), (_, value) => (typeof value === "bigint" ? String(value) : value));

let files: Real[];
beforeAll(async () => {
  files = [await written(false), await written(true)];
});

/** Registers, some at once, a replacement and leaves; with a part that was written at a start where `isRestarted`. */
async function written(isRestarted: boolean): Promise<Real> {
  const disk = new MemoryDisk();
  const there = new Map<bigint, RegionRecord>();
  const histories = new Set([told([])]);
  const remember = () => {
    histories.add(told([...there.values()].sort((a, b) => (a.generation < b.generation ? -1 : 1))));
  };
  let { file } = await openState(disk.path, { fileSystem: disk });
  const register = async (record: RegionRecord, replaces?: bigint) => {
    await file.registered(record, replaces);
    if (replaces !== undefined) there.delete(replaces);
    there.set(record.generation, record);
    remember();
  };
  const [first, second, third, ...others] = records as [RegionRecord, RegionRecord, RegionRecord];
  await register(first);
  await register(second);
  if (isRestarted) {
    await file.close();
    histories.clear();
    remember();
    ({ file } = await openState(disk.path, { fileSystem: disk }));
  }
  await register(third, second.generation);
  // In one write, in this order.
  await Promise.all((others as RegionRecord[]).map((record) => register(record)));
  await file.left(first.generation);
  there.delete(first.generation);
  remember();
  return { bytes: Buffer.from(disk.bytes), histories };
}

async function read(bytes: Uint8Array): Promise<readonly RegionRecord[] | StateFileError> {
  const disk = MemoryDisk.with(bytes);
  try {
    const { file, records: found } = await openState(disk.path, { fileSystem: disk });
    await file.close();
    return found;
  } catch (error) {
    if (error instanceof StateFileError) return error;
    throw error;
  }
}

function expectDiscreet({ message }: StateFileError): void {
  expect(message).not.toMatch(/handle of|aGFuZGxl|is a secret/);
  expect(message.length).toBeLessThan(400);
}

async function expectRefusalOrHistory(bytes: Uint8Array, { histories }: Real): Promise<void> {
  const found = await read(bytes);
  if (found instanceof StateFileError) expectDiscreet(found);
  // An empty file is as good as none.
  else if (bytes.length > 0) expect(histories).toContain(told(found));
}

test(
  "a state file of which bytes were spoiled is refused, or read as it once was",
  async () => {
    await holds(
      fc.asyncProperty(fc.nat(1), mutated, async (which, mutate) => {
        const real = files[which] as Real;
        await expectRefusalOrHistory(mutate(real.bytes), real);
      }),
      1500,
    );
  },
  timeout,
);

const move = fc.record({
  how: fc.constantFrom("out", "again", "swap", "move"),
  from: fc.nat(99),
  to: fc.nat(99),
});

function moved(
  lines: readonly string[],
  { how, from, to }: { how: string; from: number; to: number },
): string[] {
  const copy = [...lines];
  const [a, b] = [from % lines.length, to % lines.length];
  const [one = "", other = ""] = [lines[a], lines[b]];
  if (how === "again") copy.splice(b, 0, one);
  else if (how === "swap") [copy[a], copy[b]] = [other, one];
  else copy.splice(a, 1);
  if (how === "move") copy.splice(b, 0, one);
  return copy;
}

const linesOf = (bytes: Buffer) => bytes.toString("latin1").split(/(?<=\n)/);

test(
  "a state file of which a line that was added is gone, twice or elsewhere is refused, or read as it once was",
  async () => {
    await holds(
      fc.asyncProperty(fc.nat(1), move, async (which, change) => {
        const real = files[which] as Real;
        const lines = linesOf(real.bytes);
        const added = lines.findIndex((line) => line.includes('"counters"')) + 1;
        const text = [...lines.slice(0, added), ...moved(lines.slice(added), change)].join("");
        await expectRefusalOrHistory(Buffer.from(text, "latin1"), real);
      }),
      500,
    );
  },
  timeout,
);

test(
  "a state file whose lines are in any order, missing or of another file has no region that was not in it",
  async () => {
    const known = new Set(records.map((record) => told([record])));
    await holds(
      fc.asyncProperty(fc.nat(1), fc.array(move, { maxLength: 4 }), async (which, changes) => {
        const real = files[which] as Real;
        const text = changes.reduce(moved, linesOf(real.bytes)).join("");
        const found = await read(Buffer.from(text, "latin1"));
        if (found instanceof StateFileError) expectDiscreet(found);
        else for (const record of found) expect(known).toContain(told([record]));
      }),
      500,
    );
  },
  timeout,
);

const oddNumber = fc.constantFrom(
  "1.5",
  "1e400",
  "9e15",
  "9007199254740993",
  "18446744073709551616",
  "99999999999999999999",
  "null",
  '""',
);
const withOddNumber = fc.tuple(fc.nat(99), oddNumber).map(([which, odd]) =>
  named(`${odd} for number ${which}`, (bytes) => {
    const parts = Buffer.from(bytes)
      .toString()
      .split(/(?<=[":,])(\d+)(?=[",}])/);
    const index = 1 + 2 * (which % ((parts.length - 1) / 2));
    return Buffer.from(parts.map((part, i) => (i === index ? odd : part)).join(""));
  }),
);

test(
  "a line that is whole and says something else is refused, or taken for exactly what it says",
  async () => {
    const record = records[4] as RegionRecord;
    const payload = encodeEntry({ kind: "registered", record, replaces: 3n });
    await holds(
      fc.asyncProperty(fc.oneof(mutated, withOddNumber), async (mutate) => {
        const other = mutate(Buffer.from(payload)).toString().replaceAll("\n", " ");
        const { bytes } = files[0] as Real;
        const line = encodeLine({ start: bytes.length, payload: other });
        const found = await read(Buffer.concat([bytes, Buffer.from(line)]));
        if (found instanceof StateFileError) return expectDiscreet(found);
        const entry = decodeEntry(other);
        if (entry.kind !== "registered") return;
        // Said once more it is the same: nothing was rounded, cut or made up.
        const again = encodeEntry(entry);
        expect(encodeEntry(decodeEntry(again))).toBe(again);
        const { registeredAt, leaseMs, deviceId, generation, byteSize } = entry.record;
        expect(Number.isNaN(new Date(registeredAt).getTime())).toBe(false);
        for (const count of [leaseMs ?? 0, deviceId]) expect(Number.isSafeInteger(count)).toBe(true);
        for (const number of [generation, byteSize]) expect(BigInt.asUintN(64, number)).toBe(number);
      }),
      1500,
    );
  },
  timeout,
);
