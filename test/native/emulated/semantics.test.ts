import { expect, it } from "vitest";
import { library, repository, run } from "./emulated-driver.js";

const source = `${repository}native/test/emulated`;
const built = `${repository}node_modules/.cache/cudashm-emulated-tests`;

// The same C++ program that `make check` runs under sanitizers, here on the library as it ships.
await run("make", ["-s", "-C", source, "program", "SANITIZE=", `OUT=${built}`]);
const program = `${built}/emulated_tests`;
const names = (await run(program, ["--list"])).stdout.trimEnd().split("\n");

it.concurrent.each(names.map((name, index) => [name, index] as const))("%s", async (_name, index) => {
  const outcome = await run(program, ["--run", String(index)], {
    env: { CUDASHM_TEST_LIBRARY: library },
  }).then(
    () => "passed",
    (error: { stderr: string }) => error.stderr,
  );
  expect(outcome).toBe("passed");
});
