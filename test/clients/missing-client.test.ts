import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const vitest = join(root, "node_modules/vitest/vitest.mjs");

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "cudashm-missing-client-"));
  // All that there is on this machine: neither curl nor Python.
  symlinkSync("/bin/sh", join(folder, "sh"));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs the tests of two clients where neither can be had. */
function runWithout(CI: string) {
  const files = ["test/clients/curl-example.test.ts", "test/clients/contract.test.ts"];
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [vitest, "run", "--reporter=default", ...files],
    { cwd: root, encoding: "utf8", env: { PATH: folder, NO_COLOR: "1", CI } },
  );
  return { status, output: stdout + stderr };
}

test.each([
  ["skipped", "", 0, /Tests {2}2 skipped \(2\)/],
  ["failed where CI is true", "true", 1, /Tests {2}2 failed \(2\)/],
])("tests of a client that cannot run are named with what to run, and %s", (_, ci, code, tally) => {
  const { status, output } = runWithout(ci);
  expect(output).toMatch(/^curl not tested: it needs curl; run `npm run setup:clients`$/m);
  expect(output).toMatch(/^the service, driven by schemathesis not tested: .*run: npm run setup:clients$/m);
  expect(output).toMatch(tally);
  expect(status).toBe(code);
});
