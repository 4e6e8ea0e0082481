import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { LineProcess } from "../../src/cli/line-process.js";
import { lockFile } from "../../src/native/file-lock.js";

const fixture = fileURLToPath(new URL("../fixtures/lock-process.mjs", import.meta.url));
let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "cudashm-lock-"));
  path = join(folder, "state.lock");
});
afterEach(() => rmSync(folder, { recursive: true }));

function startHolder(end: "release" | "leave" = "release"): LineProcess {
  return new LineProcess(process.execPath, [fixture, path, end]);
}

const heldText = () => `another process holds the lock ${path}: end that process, or use another path`;

function descriptorsOf(file: string): number {
  return readdirSync("/proc/self/fd").filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === file;
    } catch {
      return false;
    }
  }).length;
}

test("a lock that another process holds is refused, and is free when that process was killed", async () => {
  await using holder = startHolder();
  expect(await holder.nextLine()).toBe("locked");
  await expect(lockFile(path)).rejects.toMatchObject({ code: "FAILED_PRECONDITION", message: heldText() });
  await holder.kill("SIGKILL");
  await (await lockFile(path)).release();
});

test.each(["release", "leave"] as const)("a lock is free when its holder ended: %s", async (end) => {
  await using holder = startHolder(end);
  expect(await holder.nextLine()).toBe("locked");
  expect(await holder.endInput()).toMatchObject({ code: 0 });
  await (await lockFile(path)).release();
});

test("a lock that this process holds is refused to another, and to this one, until it is released", async () => {
  const lock = await lockFile(path);
  await using refused = startHolder();
  expect(await refused.nextLine()).toBe(`FAILED_PRECONDITION: ${heldText()}`);
  await expect(lockFile(path)).rejects.toMatchObject({ code: "FAILED_PRECONDITION", message: heldText() });
  expect(descriptorsOf(path)).toBe(1);
  await lock.release();
  await lock.release();
  expect(descriptorsOf(path)).toBe(0);
  await using taker = startHolder();
  expect(await taker.nextLine()).toBe("locked");
});

test("a child process that outlives its parent's release does not hold the lock", async () => {
  const lock = await lockFile(path);
  const child = spawn("cat", { stdio: ["pipe", "ignore", "ignore"] });
  await lock.release();
  await (await lockFile(path)).release();
  child.stdin.end();
  await once(child, "close");
});

test("the file is made for its owner alone, and what is in one that was there stays", async () => {
  await (await lockFile(path)).release();
  expect(statSync(path).mode & 0o777).toBe(0o600);
  writeFileSync(path, "kept");
  await (await lockFile(path)).release();
  expect(statSync(path).size).toBe(4);
});

test("a symbolic link is refused, and so is a path in a folder that is not there", async () => {
  const link = join(folder, "link");
  symlinkSync(path, link);
  await expect(lockFile(link)).rejects.toMatchObject({
    code: "UNAVAILABLE",
    message: `the lock ${link} cannot be opened: it is a symbolic link`,
  });
  expect(readdirSync(folder)).toEqual(["link"]);
  await expect(lockFile(join(folder, "none", "x"))).rejects.toMatchObject({
    code: "UNAVAILABLE",
    message: expect.stringMatching(/cannot be opened: ENOENT/),
  });
});
