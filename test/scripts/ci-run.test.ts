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

/** `.ci/run` in a clone that was built before, with an npm of which `npm test` and `npm run` do what is given. */
function runGate(npmTest: string, npmRun = "true") {
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
    `#!/bin/sh\nif [ $1 = run ]; then ${npmRun}; exit; fi\necho "npm $*"\n${left}\n${npmTest}\n`,
  );
  chmodSync(npm, 0o755);
  const { status, stdout } = spawnSync(join(clone, ".ci", "run"), {
    encoding: "utf8",
    env: { ...process.env, PATH: `${join(clone, "bin")}:${process.env.PATH}` },
  });
  return { status, lines: stdout.trimEnd().split("\n"), left: built.filter((folder) => existsSync(folder)) };
}

test("the gate removes what was built, runs npm test, and ends with its tally", () => {
  const { status, lines, left } = runGate("echo '7 passed, 0 failed, 1 skipped'");
  expect(left).toEqual([]);
  expect(lines).toEqual(["npm test", "7 passed, 0 failed, 1 skipped", "7 passed, 0 failed, 1 skipped"]);
  expect(status).toBe(0);
});

test("the gate fails as npm test does, the tally still last", () => {
  const { status, lines } = runGate("echo '7 passed, 2 failed, 0 skipped'; echo more; exit 1");
  expect([status, lines.at(-1)]).toEqual([1, "7 passed, 2 failed, 0 skipped"]);
});

test.each([
  ["npm test comes to none", "echo 'cannot install' >&2; exit 3", "true"],
  ["the tests' own packages cannot be installed", "exit 0", "echo 'no apt-get' >&2; false"],
])("where there is no tally since %s, one failure is counted", (_why, npmTest, npmRun) => {
  const { status, lines } = runGate(npmTest, npmRun);
  expect(lines.at(-1)).toBe("0 passed, 1 failed, 0 skipped");
  expect(status).not.toBe(0);
});
