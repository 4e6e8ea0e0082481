import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const script = fileURLToPath(new URL("../../scripts/setup-python.mjs", import.meta.url));

/** Runs the setup on a machine with no Python. */
function setUp(args: readonly string[], variables: Readonly<Record<string, string>> = {}) {
  const env = { PATH: "/nonexistent", ...variables };
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], {
    env,
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}

const advice =
  "they need Python 3.11 to 3.13 (a newer one has no wheels yet) with its venv module; run: npm run setup:clients\n";

test("without Python the setup says which tests are skipped and what to run", () => {
  expect(setUp(["clients", "cuda-newest"])).toEqual({
    status: 0,
    stdout: "",
    stderr:
      `setup: skipped: the tests of the official Python clients cannot run: ${advice}` +
      `setup: skipped: the tests of the newest cuda-bindings cannot run: ${advice}`,
  });
});

test("without Python the setup fails where nothing may be skipped", () => {
  expect(setUp(["clients"], { CI: "true" })).toEqual({
    status: 1,
    stdout: "",
    stderr: `setup: the tests of the official Python clients cannot run: ${advice}`,
  });
});

test("tests can ask whether an environment can be made", () => {
  expect(setUp(["--where", "clients"])).toEqual({
    status: 3,
    stdout: "",
    stderr: `setup: the official Python clients: ${advice}`,
  });
});

test("an environment that is not there is refused by its name", () => {
  expect(setUp(["client"])).toMatchObject({ status: 2, stderr: expect.stringContaining("clients,") });
});
