import { createHash } from "node:crypto";
import { chmodSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, onTestFinished, test, vi } from "vitest";
import { UsageError } from "../src/config/usage-error.js";
import { createLog } from "../src/log.js";
import { TokenFile } from "../src/token-file.js";

const folder = mkdtempSync(join(tmpdir(), "cudashm-tokens-"));
afterAll(() => rmSync(folder, { recursive: true }));

const entry = (name: string, token: string) =>
  `${name}: ${createHash("sha256").update(token).digest("hex")}\n`;

function setUp(name: string, text: string, mode = 0o600) {
  const path = join(folder, name);
  const write = (content: string, as = mode) => {
    writeFileSync(`${path}.new`, content);
    chmodSync(`${path}.new`, as);
    renameSync(`${path}.new`, path);
  };
  write(text);
  const lines: { level: number; msg: string; problems?: string[] }[] = [];
  const log = createLog("info", { write: (line) => lines.push(JSON.parse(line)) });
  const told = () => lines.splice(0).map(({ level, msg, problems }) => [level, msg, ...(problems ?? [])]);
  return { path, write, log, told };
}

const callerOf = (file: TokenFile, token: string) => {
  try {
    return file.principals.authenticate({ header: () => `Bearer ${token}` }).name;
  } catch {
    return null;
  }
};

async function problemsOf(path: string, log: ReturnType<typeof createLog>): Promise<readonly string[]> {
  const error: unknown = await TokenFile.open(path, log).catch((reason: unknown) => reason);
  if (error instanceof UsageError) return error.problems;
  throw error;
}

test("a changed file is taken over, and told once", async () => {
  const { path, write, log, told } = setUp("changed", entry("alice", "a"));
  const file = await TokenFile.open(path, log);
  await file.lookAgain();
  expect(told()).toEqual([]);
  write(entry("bob", "b"));
  await file.lookAgain();
  await file.lookAgain();
  expect([callerOf(file, "a"), callerOf(file, "b")]).toEqual([null, "bob"]);
  expect(told()).toEqual([[30, "the token file was read again"]]);
});

test("a file that went bad changes nothing, is told once, and is taken over once it is mended", async () => {
  const { path, write, log, told } = setUp("bad", entry("alice", "a"));
  const file = await TokenFile.open(path, log);
  write("alice s3cret");
  await file.lookAgain();
  await file.lookAgain();
  expect(callerOf(file, "a")).toBe("alice");
  expect(told()).toEqual([
    [
      50,
      "the token file is no good as it is now; what it said before stays in force",
      "line 1: expected a name, a colon and the 64 hex digits of a token's SHA-256, then nothing or admin",
    ],
  ]);
  rmSync(path);
  await file.lookAgain();
  expect(callerOf(file, "a")).toBe("alice");
  expect(told()).toEqual([[50, expect.any(String), expect.stringMatching(/^cannot be read: ENOENT/)]]);
  write(entry("bob", "b"));
  await file.lookAgain();
  expect(callerOf(file, "b")).toBe("bob");
});

test("a watched file is looked at by itself", async () => {
  const { path, write, log } = setUp("watched", entry("alice", "a"));
  const file = await TokenFile.open(path, log);
  const taken = new Promise<void>((resolve) => {
    log.info = () => resolve();
  });
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const stop = file.watch();
  write(entry("bob", "b"));
  vi.advanceTimersByTime(2000);
  await taken;
  stop();
  expect(vi.getTimerCount()).toBe(0);
  expect(callerOf(file, "b")).toBe("bob");
});

test("a file that everyone can read is warned about, one that everyone can write is refused", async () => {
  const readable = setUp("readable", entry("alice", "a"), 0o644);
  await TokenFile.open(readable.path, readable.log);
  expect(readable.told()).toEqual([[40, expect.stringMatching(/^every user .* can read the token file/)]]);
  const writable = setUp("writable", entry("alice", "a"), 0o622);
  expect(await problemsOf(writable.path, writable.log)).toEqual([
    `--token-file ${writable.path}: every user of this machine can write to it, and let himself in; run chmod 600 on it`,
  ]);
});

test("at the start, a file that is missing or wrong is a problem of the command line", async () => {
  const { log } = setUp("unused", "");
  expect(await problemsOf(join(folder, "none"), log)).toEqual([
    expect.stringMatching(/^--token-file .*none: cannot be read: ENOENT/),
  ]);
  const { path } = setUp("two", "x\ny\n");
  expect(await problemsOf(path, log)).toHaveLength(2);
});
