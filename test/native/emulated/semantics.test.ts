import { availableParallelism } from "node:os";
import { expect, it } from "vitest";
import { library, repository, run } from "./emulated-driver.js";

const built = `${repository}node_modules/.cache/cudashm-native-tests/plain`;

// The same C++ program that `make check-emulated` runs under sanitizers, here on the library as it ships.
const make = ["-s", `-j${availableParallelism()}`, "-C", `${repository}native/test`];
await run("make", [...make, "emulated-tests", "SANITIZE=", `BUILD=${built}`]);
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
