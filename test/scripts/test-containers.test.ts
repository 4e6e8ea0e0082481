import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const script = fileURLToPath(new URL("../../scripts/test-containers.mjs", import.meta.url));

function run(engine: string) {
  const env = { ...process.env, CUDASHM_DOCKER_ENGINE: engine, PATH: "/nowhere" };
  const { status, stdout } = spawnSync(process.execPath, [script], { encoding: "utf8", env });
  return { status, lines: stdout.trimEnd().split("\n") };
}

test("where there is no container engine, that is said and counted as a skip", () => {
  expect(run("")).toEqual({
    status: 0,
    lines: ["skipped: there is no container engine here", "0 passed, 0 failed, 1 skipped"],
  });
});

test("an engine that does not start is a failure", () => {
  const { status, lines } = run("/bin/false");
  expect(status).toBe(1);
  expect(lines[0]).toMatch(/^FAILED: \/bin\/false up .+ ended with 1$/);
  expect(lines.at(-1)).toBe("0 passed, 1 failed, 0 skipped");
});
