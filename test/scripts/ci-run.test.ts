import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** `.ci/run` in a clone that was built before, with an npm whose commands do what is given. */
function runGate(
  npmTest: string,
  { setup = "true", containers = "echo '1 passed, 0 failed, 0 skipped'" } = {},
) {
  const clone = mkdtempSync(join(tmpdir(), "cudashm-ci-"));
  folders.push(clone);
  cpSync(join(root, ".ci"), join(clone, ".ci"), { recursive: true });
  const built = ["native/build", "native/prebuilds", "dist"].map((folder) => join(clone, folder));
  for (const folder of built) mkdirSync(folder, { recursive: true });
  const npm = join(clone, "bin", "npm");
  mkdirSync(join(clone, "bin"));
  const left = "ls -d native/build native/prebuilds dist 2>/dev/null";
  writeFileSync(
    npm,
    `#!/bin/sh
    case "$*" in *setup:clients) ${setup}; exit ;; *test:containers) ${containers}; exit ;; esac
    echo "npm $*"; ${left}; ${npmTest}\n`,
  );
  chmodSync(npm, 0o755);
  const { status, stdout } = spawnSync(join(clone, ".ci", "run"), {
    encoding: "utf8",
    env: { ...process.env, PATH: `${join(clone, "bin")}:${process.env.PATH}` },
  });
  return { status, lines: stdout.trimEnd().split("\n"), left: built.filter((folder) => existsSync(folder)) };
}

test("the gate removes what was built, runs npm test and the container tests, and ends with their tally", () => {
  const { status, lines, left } = runGate("echo '7 passed, 0 failed, 1 skipped'");
  expect(left).toEqual([]);
  expect(lines).toEqual([
    "npm test",
    "7 passed, 0 failed, 1 skipped",
    "1 passed, 0 failed, 0 skipped",
    "8 passed, 0 failed, 1 skipped",
  ]);
  expect(status).toBe(0);
});

test("the gate fails as npm test does, the tally still last", () => {
  const { status, lines } = runGate("echo '7 passed, 2 failed, 0 skipped'; echo more; exit 1");
  expect([status, lines.at(-1)]).toEqual([1, "8 passed, 2 failed, 0 skipped"]);
});

test.each([
  ["fail", "echo '3 passed, 1 failed, 0 skipped'; exit 1", "10 passed, 1 failed, 0 skipped"],
  ["end with no tally", "exit 0", "7 passed, 1 failed, 0 skipped"],
  [
    "end badly after a good tally",
    "echo '3 passed, 0 failed, 0 skipped'; exit 9",
    "10 passed, 1 failed, 0 skipped",
  ],
])("the gate fails where the container tests %s", (_how, containers, tally) => {
  const { status, lines } = runGate("echo '7 passed, 0 failed, 0 skipped'", { containers });
  expect([status, lines.at(-1)]).toEqual([1, tally]);
});

test("where npm test leaves no tally, one failure is counted", () => {
  const { status, lines } = runGate("echo 'cannot install' >&2; exit 3");
  expect([status, lines.at(-1)]).toEqual([1, "1 passed, 1 failed, 0 skipped"]);
});

test("where the tests' own packages cannot be installed, one failure is counted and nothing else runs", () => {
  const { status, lines } = runGate("exit 0", { setup: "echo 'no apt-get' >&2; false" });
  expect([status, lines]).toEqual([1, ["0 passed, 1 failed, 0 skipped"]]);
});
