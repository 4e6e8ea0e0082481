// `npm test`: every check the project has, one after the other, all of them even when one fails. The last line is
// the tally. With arguments it runs only the tests that match them: `npm test -- test/core`.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "./tree-hash.mjs";

const bin = (name) => join(root, "node_modules", ".bin", name);

const makeNative = ["make", "-s", `-j${availableParallelism()}`, "-C", "native/test"];

const checks = [
  ["lint and format", bin("biome"), "check", "--error-on-warnings", "."],
  ["types", bin("tsc"), "-p", "tsconfig.json", "--noEmit"],
  ["nothing unused", bin("knip"), "--no-progress"],
  ["generated code is current", process.execPath, "scripts/check-generated.mjs"],
  ["README has every flag", process.execPath, "scripts/readme-flags.mjs", "--check"],
  ["emulated driver under ASan and UBSan", ...makeNative, "check-emulated"],
  ["native layer under ASan and UBSan", ...makeNative, "check-addon"],
  ["parsers on made-up input under ASan and UBSan", "make", "-s", "-C", "native/fuzz", "check"],
  ["addon under ASan and LeakSanitizer", process.execPath, "scripts/test-native-sanitized.mjs"],
];

const filters = process.argv.slice(2);
const tally = { passed: 0, failed: 0, skipped: 0 };
const failures = [];

if (filters.length === 0) for (const [name, ...command] of checks) check(name, command);
runVitest();

for (const failure of failures) process.stdout.write(`failed: ${failure}\n`);
process.stdout.write(`${tally.passed} passed, ${tally.failed} failed, ${tally.skipped} skipped\n`);
process.exitCode = tally.failed === 0 ? 0 : 1;

function check(name, [file, ...args]) {
  process.stdout.write(`\n--- ${name}\n`);
  const started = performance.now();
  const { status } = spawnSync(file, args, { cwd: root, stdio: ["ignore", "inherit", "inherit"] });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  process.stdout.write(`--- ${name}: ${status === 0 ? "ok" : "FAILED"} (${seconds} s)\n`);
  if (status === 0) tally.passed++;
  else fail(name);
}

function runVitest() {
  const folder = mkdtempSync(join(tmpdir(), "cudashm-test-"));
  const report = join(folder, "report.json");
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const { status } = spawnSync(bin("vitest"), ["run", ...reporters, ...filters], {
    cwd: root,
    stdio: "inherit",
  });
  try {
    const result = JSON.parse(readFileSync(report, "utf8"));
    tally.passed += result.numPassedTests;
    tally.failed += result.numFailedTests;
    tally.skipped += result.numPendingTests + result.numTodoTests;
    if (result.numFailedTests > 0) failures.push(`${result.numFailedTests} tests`);
    // A file that does not load, or an unhandled rejection, fails no test of its own.
    if (status !== 0 && result.numFailedTests === 0) fail("vitest, outside any test");
  } catch (error) {
    fail(`vitest left no report: ${error.message}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function fail(what) {
  tally.failed++;
  failures.push(what);
}
