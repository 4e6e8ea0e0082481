import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type FileSystem, systemFiles } from "../../src/state/file-system.js";
import { encodeLine } from "../../src/state/line.js";
import { StateFile } from "../../src/state/state-file.js";
import { StateFileError } from "../../src/state/state-file-error.js";
import { hookedFiles, systemError } from "./fault-files.js";
import { MemoryDisk } from "./memory-disk.js";
import { generationsIn, openState, problemOf, recordOf } from "./records.js";

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "cudashm-state-"));
  path = join(folder, "state");
});
afterEach(() => rmSync(folder, { recursive: true }));

const whatToDo =
  "put back a copy that is good, or move the file away to start without any regions: clients then register anew";

/** A state file with these regions, each of a write of its own. */
async function bytesWith(...generations: number[]): Promise<Buffer> {
  const disk = new MemoryDisk();
  const { file } = await openState(disk.path, { fileSystem: disk });
  for (const generation of generations) await file.registered(recordOf(generation));
  await file.close();
  return disk.bytes;
}

function linesOf(bytes: Uint8Array): string[] {
  return Buffer.from(bytes)
    .toString("latin1")
    .split(/(?<=\n)/);
}

async function problemWith(bytes: Uint8Array | string): Promise<string> {
  const disk = MemoryDisk.with(Buffer.from(bytes));
  return problemOf(disk.path, { fileSystem: disk });
}

async function found(bytes: Uint8Array | string): Promise<number[]> {
  const disk = MemoryDisk.with(Buffer.from(bytes));
  return generationsIn(disk.path, { fileSystem: disk });
}

test.each([0o000, 0o022, 0o077, 0o777])(
  "only its user can read the file, with umask %o too",
  async (umask) => {
    const before = process.umask(umask);
    const { file } = await openState(path).finally(() => process.umask(before));
    await file.registered(recordOf(1));
    expect(statSync(path).mode & 0o7777).toBe(0o600);
    await file.close();
    expect(await generationsIn(path)).toEqual([1]);
  },
);

test.each([0o640, 0o620, 0o604, 0o666, 0o610])(
  "a file with mode %o is refused and left alone",
  async (mode) => {
    await (await openState(path)).file.close();
    const before = readFileSync(path);
    chmodSync(path, mode);
    expect(await problemOf(path)).toBe(
      "it holds handles, and other users of this machine have rights to it; run chmod 600 on it",
    );
    expect(statSync(path).mode & 0o7777).toBe(mode);
    expect(readFileSync(path)).toEqual(before);
  },
);

test("a file of another user is refused", async () => {
  await (await openState(path)).file.close();
  const user = process.geteuid?.() ?? 0;
  const fileSystem: FileSystem = {
    ...systemFiles,
    open: async (...args) => {
      const file = await systemFiles.open(...args);
      file.stat = async () => ({ isFile: () => true, mode: 0o100600, uid: user + 1, nlink: 1 });
      return file;
    },
  };
  expect(await problemOf(path, { fileSystem })).toBe(
    `it belongs to user ${user + 1}, who could change it, and this is user ${user}; run chown ${user} on it or choose another path`,
  );
});

test("a symbolic link is refused, whether or not it leads anywhere, and so is what is no file", async () => {
  symlinkSync(join(folder, "elsewhere"), path);
  const problem = "it is a symbolic link, which is not followed; give the path of the file itself";
  expect(await problemOf(path)).toBe(problem);
  writeFileSync(join(folder, "elsewhere"), "", { mode: 0o600 });
  expect(await problemOf(path)).toBe(problem);
  rmSync(path);
  mkdirSync(path);
  expect(await problemOf(path)).toMatch(/^there is something that is no file/);
  rmSync(path, { recursive: true });
  execFileSync("mkfifo", [path]);
  expect(await problemOf(path)).toMatch(/^there is something that is no file/);
});

test("a socket is refused and left there", async () => {
  const server = createServer().listen(path);
  await problemOf(path);
  expect(statSync(path).isSocket()).toBe(true);
  await new Promise((resolve) => server.close(resolve));
});

test("without its folder the problem names the folder, and nothing is locked", async () => {
  const missing = join(folder, "none", "state");
  let locked = 0;
  const lock = async () => {
    locked++;
    return { release: async () => {} };
  };
  const error: unknown = await StateFile.open(missing, { lock }).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(StateFileError);
  expect((error as StateFileError).message).toBe(
    `there is no folder ${join(folder, "none")}; make it or choose another path`,
  );
  expect(locked).toBe(0);
});

test("a lock that another process has is a problem of the file, and nothing is read", async () => {
  const lock = async () => {
    throw new Error("another process holds the lock");
  };
  const error: unknown = await StateFile.open(path, { lock }).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(StateFileError);
  expect((error as StateFileError).message).toBe("another process holds the lock");
  expect(existsSync(path)).toBe(false);
});

test.each(["EACCES", "EROFS", "ENOSPC", "EBUSY", "EIO"])(
  "a start that ends in %s says what to do, lets the lock and every file go, and loses nothing",
  async (code) => {
    const { file } = await openState(path);
    await file.registered(recordOf(1));
    await file.close();
    const calls = { open: 0, close: 0 };
    let failAt = 0;
    let step = 0;
    const fileSystem = hookedFiles({
      before: ({ name }) => {
        if (name !== "close" && step++ === failAt) throw systemError(code);
      },
      after: ({ name }) => {
        if (name === "open" || name === "close") calls[name]++;
      },
    });
    let locked = 0;
    const lock = async () => {
      locked++;
      return {
        release: async () => {
          locked--;
        },
      };
    };
    // Every step of a start in turn, until one gets by without any failing.
    for (; failAt < 30; failAt++) {
      step = 0;
      const opened = await StateFile.open(path, { lock, fileSystem }).catch((reason: unknown) => reason);
      if (!(opened instanceof StateFileError)) {
        await (opened as { file: StateFile }).file.close();
        break;
      }
      expect(opened.message).toMatch(code === "EIO" ? /^EIO/ : /choose another path$|mount .* instead$/);
    }
    expect(failAt).toBeGreaterThan(8);
    expect(failAt).toBeLessThan(30);
    expect(locked).toBe(0);
    expect(calls.open).toBe(calls.close);
    expect(await generationsIn(path)).toEqual([1]);
  },
);

test("what a crash left of a new file is written anew, even where others could read it", async () => {
  await (await openState(path)).file.close();
  writeFileSync(`${path}.new`, "half", { mode: 0o666 });
  const { file } = await openState(path);
  await file.registered(recordOf(1));
  await file.close();
  expect(existsSync(`${path}.new`)).toBe(false);
  expect(statSync(path).mode & 0o7777).toBe(0o600);
});

test("an empty file is a new one", async () => {
  expect(await found("")).toEqual([]);
});

test("a file of another version or another program is refused", async () => {
  const bytes = Buffer.from(await bytesWith(1)).toString("latin1");
  expect(await problemWith(bytes.replace("cudashm-state 1", "cudashm-state 2"))).toBe(
    "it has version 2 of the format, and this cudashm knows version 1 only; start the cudashm that wrote it, or choose another path",
  );
  const foreign = "that is no state file of cudashm; move it away or choose another path";
  for (const text of [
    "\n",
    "cudashm-state 1",
    "cudashm-state \n",
    "{}\n",
    "x".repeat(1_000_000),
    bytes.slice(1),
  ]) {
    expect(await problemWith(text)).toBe(foreign);
  }
});

test("a damaged line with good ones after it is named, and nothing is changed", async () => {
  const lines = linesOf(await bytesWith(1, 2, 3, 4));
  expect(lines).toHaveLength(6);
  // The last but one is the last that a later write proves to have been on the disk.
  for (let index = 1; index < 5; index++) {
    const damaged = lines.with(index, (lines[index] as string).replace("{", "["));
    expect(await problemWith(damaged.join(""))).toBe(
      `line ${index + 1} is damaged, and not by a crash of cudashm, which can only spoil what was written last; ${whatToDo}`,
    );
  }
  const disk = MemoryDisk.with(Buffer.from(lines.with(2, "x\n").join("")));
  const before = disk.bytes;
  await problemOf(disk.path, { fileSystem: disk });
  expect(disk.bytes).toEqual(before);
});

test("whichever byte of what a later write proves is turned, the start is refused", async () => {
  const bytes = await bytesWith(1, 2, 3);
  const lines = linesOf(bytes);
  // But for the end of the line before the last: with that, the two are one line at the end.
  const proven = bytes.length - (lines.at(-1) as string).length - 1;
  for (let at = 0; at < proven; at++) {
    for (const mask of [0x01, 0x20, 0xff]) {
      const damaged = Buffer.from(bytes);
      damaged[at] = (damaged[at] as number) ^ mask;
      await problemWith(damaged);
    }
  }
});

test("the last write is cut off where a crash cut it short, at whatever byte", async () => {
  const bytes = await bytesWith(1, 2, 3);
  const last = linesOf(bytes).at(-1) as string;
  for (let length = bytes.length - last.length; length < bytes.length; length++) {
    const disk = MemoryDisk.with(bytes.subarray(0, length));
    const { file, records, cutBytes } = await openState(disk.path, { fileSystem: disk });
    expect([records.length, cutBytes]).toEqual([2, length - (bytes.length - last.length)]);
    await file.registered(recordOf(9));
    await file.close();
    expect(await generationsIn(disk.path, { fileSystem: disk })).toEqual([1, 2, 9]);
  }
});

test("a file that was on the disk whole and is shorter now is refused, at whatever byte", async () => {
  const disk = MemoryDisk.with(await bytesWith(1, 2, 3));
  await (await openState(disk.path, { fileSystem: disk })).file.close();
  for (let length = 1; length < disk.bytes.length; length++)
    await problemWith(disk.bytes.subarray(0, length));
});

test("a line longer than any is damage, however long, and no memory is spent on it", async () => {
  const [header, counters, first] = linesOf(await bytesWith(1));
  const huge = "x".repeat(20_000_000);
  expect(await problemWith(`${header}${huge}\n${counters}`)).toMatch(/^line 2 is damaged/);
  const later = encodeLine({ start: 25_000_000, payload: '{"left":"7"}' });
  expect(await problemWith(`${header}${counters}${first}${huge}\n${later}`)).toMatch(/^line 4 is damaged/);
  expect(await found(`${header}${counters}${first}${huge}`)).toEqual([1]);
});

test("a whole line that says what nobody knows is refused by number, without a word of it", async () => {
  const [header, counters] = linesOf(await bytesWith());
  const good = JSON.parse((linesOf(await bytesWith(1))[2] as string).replace(/^\S+ \S+ /, "")) as {
    registered: Record<string, unknown>;
  };
  const wrong: Record<string, unknown[]> = {
    generation: [1, "-1", "", "1".repeat(21), undefined],
    handle: ["", "AAAA", 1],
    deviceId: ["0", null, -1],
    session: [{}, "x", undefined],
    protocol: ["toString", "ftp", null],
    leaseMs: ["5", undefined],
    exporter: [{ pid: 1 }, undefined],
    labels: [{}, [["a"]], [1], null],
    name: [undefined, 5],
  };
  const payloads = Object.entries(wrong).flatMap(([key, values]) =>
    values.map((value) => JSON.stringify({ registered: { ...good.registered, [key]: value } })),
  );
  payloads.push(
    "{}",
    "null",
    "[]",
    '"x"',
    '{"left":7}',
    '{"counters":null}',
    "{",
    "",
    '{"left":"1","a":',
    "\u0000",
  );
  for (const payload of payloads) {
    expect(await problemWith(`${header}${counters}${encodeLine({ start: 0, payload })}`)).toBe(
      `line 3 is whole but says nothing that this version knows; ${whatToDo}`,
    );
  }
});

test("whatever is in the file, a start answers or refuses in its own words", async () => {
  const [header = "", ...lines] = linesOf(await bytesWith(1, 2));
  const line = fc.oneof(
    fc.constantFrom(...lines),
    fc.string({ unit: "binary", maxLength: 50 }).map((text) => `${text}\n`),
    fc
      .tuple(fc.nat(2000), fc.oneof(fc.json(), fc.string()))
      .map(([start, payload]) => encodeLine({ start, payload: payload.replaceAll("\n", " ") })),
    fc.constantFrom(...lines).chain((text) => fc.nat(text.length).map((length) => text.slice(0, length))),
  );
  const text = fc
    .tuple(fc.constantFrom(header, ""), fc.array(line, { maxLength: 12 }))
    .map((parts) => parts.flat().join(""));
  const content = fc.oneof(
    text.map((all) => Buffer.from(all, "latin1")),
    fc.uint8Array({ maxLength: 300 }),
  );
  await fc.assert(
    fc.asyncProperty(content, async (bytes) => {
      const disk = MemoryDisk.with(bytes);
      const outcome = await openState(disk.path, { fileSystem: disk }).catch((error: unknown) => error);
      if (!(outcome instanceof StateFileError)) await (outcome as { file: StateFile }).file.close();
    }),
    { numRuns: 3000, seed: 5 },
  );
});
