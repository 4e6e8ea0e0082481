// Runs the addon and the emulated driver, built with AddressSanitizer and UBSan in a folder of their own, in plain
// Node processes that end in every way. Fails on any report, and on any memory of ours that is leaked.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { createCudaDriver } from "../dist/native/driver-selection.js";
import { root } from "./tree-hash.mjs";

// The C++ tests are built there as well, of the same objects.
const folder = join(root, "node_modules", ".cache", "cudashm-native-tests", "address-undefined");
const hang = 600_000;
const leakSummary = /SUMMARY: AddressSanitizer: \d+ byte\(s\) leaked in \d+ allocation\(s\)\./g;

// Scenarios of test/fixtures/driver-process.mjs with their variables. These end by themselves, with code 0.
const ending = [
  ["close-during-copies", {}],
  ["collected", {}],
  ["workers", {}],
  ["worker-alone", {}],
  ["worker-terminated-during-calls", {}],
  ["worker-throws", {}],
  ["worker-terminated-during-hung-open", { CUDASHM_EMULATED_DELAYS: `cuIpcOpenMemHandle_v2=${hang}` }],
  ["drain", {}],
];

// These leave Node, with all that it holds, where it stands, so what is left says nothing about leaks.
const leaving = [
  ["exit", {}],
  ["throw", {}],
  ["exit-during-calls", {}],
  ["exit-during-hung-open", { CUDASHM_EMULATED_DELAYS: `cuIpcOpenMemHandle_v2=${hang}` }],
  ["exit-during-hung-initialise", { CUDASHM_EMULATED_DELAYS: `cuInit=${hang}` }],
];

// Scenarios of test/fixtures/watch-process.mjs that end by themselves, with code 0.
const watching = [
  "drain",
  "all-exit",
  "workers-terminated",
  "worker-terminated-during-exits",
  "worker-drains",
];

// Scenarios of test/fixtures/fault-process.mjs.
const failing = ["every call", "every call for good", "file lock"];

const running = new Set();

build();
const asan = runtime("libasan.so");
// This process, which is not instrumented, is the exporter.
const allocation = await createCudaDriver({ preference: "emulated", contextLingerMs: 0 }).allocate(0, 4096n);
await allocation.write(0n, Uint8Array.of(7));
const handle = Buffer.from((await allocation.exportHandle()).exposeBytes()).toString("base64");
const scratch = mkdtempSync(join(tmpdir(), "cudashm-asan-"));
try {
  const waiting = [
    ...failing.map((scenario) => ({ scenario, variables: {}, leaks: true, of: "fault-process" })),
    ...ending.map(([scenario, variables]) => ({ scenario, variables, leaks: true, of: "driver-process" })),
    ...leaving.map(([scenario, variables]) => ({ scenario, variables, leaks: false, of: "driver-process" })),
    ...watching.map((scenario) => ({ scenario, variables: {}, leaks: true, of: "watch-process" })),
    { scenario: "exit", variables: {}, leaks: false, of: "watch-process" },
  ];
  const lane = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await run(next);
  };
  await Promise.all([lane(), lane()]);
} finally {
  rmSync(scratch, { recursive: true });
  await allocation.free();
}

function build() {
  for (const part of ["dist", "test/fixtures"]) {
    rmSync(join(folder, part), { recursive: true, force: true });
    cpSync(join(root, part), join(folder, part), { recursive: true });
  }
  const make = ["-s", `-j${availableParallelism()}`, "-C", join(root, "native", "test"), "node"];
  const { status } = spawnSync("make", [...make, `BUILD=${folder}`, `NODE_PREFIX=${nodePrefix()}`], {
    stdio: ["ignore", "inherit", "inherit"],
  });
  if (status !== 0) fail("the build with sanitizers failed");
}

/** Where node-gyp, which may have downloaded them, has Node's headers from. */
function nodePrefix() {
  const settings = readFileSync(join(root, "native", "build", "config.gypi"), "utf8");
  const prefix = /"nodedir": "(.+)"/.exec(settings)?.[1];
  return prefix ?? fail("the addon has not been built: npm run setup");
}

function runtime(name) {
  const path = execFileSync("g++", [`-print-file-name=${name}`], { encoding: "utf8" }).trim();
  if (!existsSync(path)) fail(`the compiler has no ${name}`);
  return path;
}

async function run({ scenario, variables, leaks: judgeLeaks, of }) {
  const code = scenario === "throw" ? 1 : 0;
  const fixture = join(folder, "test", "fixtures", `${of}.mjs`);
  const child = spawn(process.execPath, ["--expose-gc", fixture, scenario, handle], {
    env: {
      ...process.env,
      ...variables,
      CUDASHM_EMULATED_LOG: join(scratch, scenario),
      LD_PRELOAD: asan,
      // Leaks are judged below, since Node has some of its own.
      ASAN_OPTIONS: `exitcode=99:detect_leaks=${Number(judgeLeaks)}`,
      LSAN_OPTIONS: "exitcode=0:report_objects=0",
      UBSAN_OPTIONS: "halt_on_error=1:print_stacktrace=1",
    },
    stdio: ["ignore", "ignore", "pipe"],
  });
  running.add(child);
  // A process that hangs is a finding too, and must not hang whoever waits for it.
  const impatient = setTimeout(() => child.kill("SIGKILL"), 120_000);
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    stderr += text;
  });
  const [ended, signal] = await once(child, "close");
  clearTimeout(impatient);
  running.delete(child);
  const leaks = ourLeaks(stderr);
  const reported = /AddressSanitizer:|runtime error:/.test(stderr.replaceAll(leakSummary, ""));
  if (ended === code && !reported && leaks.length === 0) {
    process.stdout.write(`ok ${of}: ${scenario}\n`);
    return;
  }
  // Whoever ends otherwise than he should leaves leaks behind that say nothing; why he did is told before them.
  const isJustOver = ended !== code && !reported;
  process.stdout.write(`${isJustOver ? stderr.split(/^=+$/m)[0] : leaks.join("\n") || stderr}\n`);
  fail(`${of}: ${scenario}: ended with ${signal ?? ended}, not ${code}, or had something to report`);
}

// A leak's stack names our sources, or our libraries where a line could not be told. Node frees what stands for a promise only
// when the promise is settled, which nobody can do for a thread that was terminated.
function ourLeaks(stderr) {
  return stderr
    .split("\n\n")
    .filter((block) => /^(Direct|Indirect) leak of/m.test(block))
    .filter((block) => /cudashm::| \.\.\/(src|emulated)\/|cudashm\.node|libcuda\.so\.1/.test(block))
    .filter((block) => !/ in napi_create_promise/.test(block));
}

function fail(text) {
  process.stdout.write(`FAILED ${text}\n`);
  for (const child of running) child.kill("SIGKILL");
  process.exit(1);
}
