import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { Exporter } from "../../src/core/exporter.js";
import { currentExporter, readExporter } from "../../src/native/exporter-identity.js";
import { NativeExporterWatch } from "../../src/native/exporter-watch.js";

const fixture = fileURLToPath(new URL("../fixtures/watch-process.mjs", import.meta.url));
const children: ChildProcess[] = [];

afterEach(async () => {
  for (const child of children.splice(0)) await ended(child, "SIGKILL");
  await expectNothingLeft();
});

/** A process that ends when its standard input does. */
function startChild(): ChildProcess & { readonly pid: number } {
  const child = spawn("cat", { stdio: ["pipe", "ignore", "ignore"] });
  children.push(child);
  return child as ChildProcess & { readonly pid: number };
}

/** The number of a process whose parent never learns of its end. */
async function startOrphanToBe(): Promise<number> {
  const parent = spawn("sh", ["-c", "sleep 1000 & echo $!; exec cat"], { stdio: ["pipe", "pipe", "ignore"] });
  children.push(parent);
  for await (const line of createInterface({ input: parent.stdout })) return Number(line);
  return expect.fail("it said no number");
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, "exit");
  child.kill(signal);
  await exit;
}

/** What this process has open of the kernel's own, such as pidfds. */
function kernelDescriptors(): string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      const link = readlinkSync(`/proc/self/fd/${fd}`);
      return link.startsWith("anon_inode:") ? [link] : [];
    } catch {
      return [];
    }
  });
}

function pidfds(): number {
  return kernelDescriptors().filter((link) => link.includes("pidfd")).length;
}

function watchThreads(): number {
  const names = readdirSync("/proc/self/task").map((task) => {
    try {
      return readFileSync(`/proc/self/task/${task}/comm`, "latin1");
    } catch {
      return "";
    }
  });
  return names.filter((name) => name === "cudashm-watch\n").length;
}

async function expectNothingLeft(): Promise<void> {
  expect(pidfds()).toBe(0);
  // A thread that was joined may be seen for a moment longer.
  await vi.waitFor(() => expect(watchThreads()).toBe(0), { interval: 1 });
}

/** A watch and the moment it is told. */
async function watched(watch: NativeExporterWatch, exporter: Exporter) {
  let times = 0;
  let tell: () => void = () => {};
  const told = new Promise<void>((resolve) => {
    tell = resolve;
  });
  const end = await watch.watch(exporter, () => {
    times++;
    tell();
  });
  return { end, told, times: () => times };
}

function refusal(promise: Promise<unknown>) {
  return expect(promise).rejects;
}

const gone = (pid: number) => ({
  code: "FAILED_PRECONDITION",
  message: `exporter.pid is ${pid} and there is no such process, or it has exited; export the memory again from a process that runs`,
});

describe.each([
  ["by pidfds", false],
  ["by start times", true],
])("exporters watched %s", (_, withoutPidfds) => {
  const watch = new NativeExporterWatch({ withoutPidfds });

  test.each(["end of input", "SIGTERM", "SIGKILL"] as const)("an exit is told, once: %s", async (way) => {
    const child = startChild();
    const exporter = await readExporter(child.pid);
    const one = await watched(watch, exporter);
    expect(pidfds()).toBe(withoutPidfds ? 0 : 1);
    if (way === "end of input") child.stdin?.end();
    else child.kill(way);
    await one.told;
    await expectNothingLeft();
    one.end();
    await ended(child, "SIGKILL");
    await refusal(watch.watch(exporter, () => {})).toMatchObject(gone(child.pid));
    expect(one.times()).toBe(1);
  });

  test("a zombie has exited, though its parent does not know yet", async () => {
    const pid = await startOrphanToBe();
    const exporter = await readExporter(pid);
    const { told } = await watched(watch, exporter);
    process.kill(pid, "SIGKILL");
    await told;
    expect(readFileSync(`/proc/${pid}/stat`, "latin1")).toContain(") Z ");
    await refusal(watch.watch(exporter, () => {})).toMatchObject(gone(pid));
  });

  test("another process that has the number now is told from the exporter", async () => {
    const child = startChild();
    const exporter = await readExporter(child.pid);
    for (const startTime of [exporter.startTime - 1n, exporter.startTime + 1n, 0n, 2n ** 64n - 1n]) {
      await refusal(watch.watch({ ...exporter, startTime }, () => {})).toMatchObject({
        code: "FAILED_PRECONDITION",
        message: `exporter.start_time is ${startTime} and process ${child.pid} was started at ${exporter.startTime}: it is another process, which has the number now; send field 22 of /proc/${child.pid}/stat, or export the memory again`,
      });
    }
  });

  test("a watch that was ended is not told, and ends no other", async () => {
    const child = startChild();
    const exporter = await readExporter(child.pid);
    const [first, second, third] = [
      await watched(watch, exporter),
      await watched(watch, exporter),
      await watched(watch, exporter),
    ];
    first.end();
    first.end();
    third.end();
    child.kill("SIGKILL");
    await second.told;
    expect([first, second, third].map(({ times }) => times())).toEqual([0, 1, 0]);
  });

  test("numbers that no process has are refused", async () => {
    const self = await currentExporter();
    for (const pid of [0, -1, -process.pid, 0.5, Number.NaN, 2 ** 22, 2 ** 22 + 1, 2 ** 31, 2 ** 53]) {
      await refusal(watch.watch({ ...self, pid }, () => {})).toMatchObject(gone(pid));
    }
    for (const startTime of [-1n, 2n ** 64n]) {
      await refusal(watch.watch({ ...self, startTime }, () => {})).toMatchObject(gone(self.pid));
    }
  });
});

const watch = new NativeExporterWatch();

test("200 watches on one exporter take one pidfd and one thread, and leave none", async () => {
  const child = startChild();
  const exporter = await readExporter(child.pid);
  const descriptors = kernelDescriptors().length;
  const watches = [];
  for (let i = 0; i < 200; i++) watches.push(await watched(watch, exporter));
  expect([pidfds(), watchThreads()]).toEqual([1, 1]);
  // The pidfd and two that the thread waits on.
  expect(kernelDescriptors().length - descriptors).toBe(3);
  for (const { end } of watches.splice(0, 100)) end();
  expect([pidfds(), watchThreads()]).toEqual([1, 1]);
  child.kill("SIGKILL");
  await Promise.all(watches.map(({ told }) => told));
  expect(kernelDescriptors().length).toBe(descriptors);
});

test("watches come and go with nothing left behind, from all at once", async () => {
  const some = Array.from({ length: 10 }, startChild);
  const exporters = await Promise.all(some.map(({ pid }) => readExporter(pid)));
  for (let round = 0; round < 10; round++) {
    const watches = await Promise.all(exporters.map((exporter) => watched(watch, exporter)));
    expect([pidfds(), watchThreads()]).toEqual([10, 1]);
    for (const { end } of watches) end();
    await expectNothingLeft();
  }
});

test("an exporter of another boot or machine is refused", async () => {
  const self = await currentExporter();
  const other = "00000000-0000-4000-8000-000000000000";
  const text = (claimed: string) =>
    `exporter.boot_id is '${claimed}' and this machine's is '${self.bootId}': the exporter is of another machine or of an earlier boot; export the memory again from a process that runs here now`;
  for (const [bootId, claimed] of [
    [other, other],
    ["", ""],
    ["x".repeat(100_000), `${"x".repeat(36)}...`],
  ] as const) {
    await refusal(watch.watch({ ...self, bootId, pid: 1, pidNamespace: 0n }, () => {})).toMatchObject({
      code: "FAILED_PRECONDITION",
      message: text(claimed),
    });
  }
});

test("an exporter of another PID namespace is refused", async () => {
  const self = await currentExporter();
  await refusal(watch.watch({ ...self, pidNamespace: 1n, pid: 2 ** 22 }, () => {})).toMatchObject({
    code: "FAILED_PRECONDITION",
    message: `exporter.pid_namespace is 1 and this service's is ${self.pidNamespace}, so the exporter's pid is not its number here; run both in one PID namespace (containers: share it)`,
  });
});

test("a process is told from all others by what /proc says of it", async () => {
  const self = await currentExporter();
  expect(self).toEqual(await readExporter(process.pid));
  expect(self.bootId).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  expect(`pid:[${self.pidNamespace}]`).toBe(readlinkSync("/proc/self/ns/pid"));
  const child = startChild();
  const exporter = await readExporter(child.pid);
  expect(exporter).toMatchObject({ pid: child.pid, bootId: self.bootId, pidNamespace: self.pidNamespace });
  expect(exporter.startTime).toBeGreaterThanOrEqual(self.startTime);
  await expect(readExporter(2 ** 22)).rejects.toMatchObject({ code: "ENOENT" });
});

test("a name with blanks and brackets does not hide when a process was started", async () => {
  const child = spawn("python3", [
    "-c",
    "import ctypes, sys; ctypes.CDLL(None).prctl(15, b') Z 1 (x) 2'); print(flush=True); sys.stdin.read()",
  ]);
  children.push(child);
  await once(child.stdout, "data");
  const exporter = await readExporter(child.pid as number);
  expect(readFileSync(`/proc/${child.pid}/comm`, "latin1")).toBe(") Z 1 (x) 2\n");
  const { told } = await watched(watch, exporter);
  child.kill("SIGKILL");
  await told;
});

async function run(scenario: string, command = [process.execPath]): Promise<object> {
  const [file, ...args] = [...command, fixture, scenario];
  const child = spawn(file as string, args, { stdio: ["ignore", "ignore", "pipe"] });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const [code, signal] = await once(child, "close");
  return { code, signal, stderr };
}

test.each([
  "exit",
  "drain",
  "all-exit",
  "workers-terminated",
  "worker-terminated-during-exits",
  "worker-drains",
])("a process or worker with open watches ends well: %s", async (scenario) => {
  expect(await run(scenario)).toEqual({ code: 0, signal: null, stderr: "" });
});

test("an uncaught exception with open watches is an ordinary one", async () => {
  expect(await run("throw")).toMatchObject({
    code: 1,
    signal: null,
    stderr: expect.stringContaining("Error: nobody catches this"),
  });
});

test("where descriptors run out, at whatever point, a watch is refused and leaves nothing", async () => {
  const limited = ["sh", "-c", 'ulimit -n 64; exec "$0" "$@"', process.execPath];
  expect(await run("few-descriptors", limited)).toEqual({ code: 0, signal: null, stderr: "" });
});
