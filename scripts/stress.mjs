// `npm run stress`: the tests of test/stress for as long as one likes (`--seconds` of load in each, 120 unless given),
// with other numbers (`--seed`). `npm test` runs them for a few seconds.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { readNumberOptions } from "./number-options.mjs";
import { root } from "./tree-hash.mjs";

// A test's time limit is ten times as long, and a timer ends at 2^31 ms.
const { seconds, seed } = readNumberOptions("stress", {
  seconds: { usual: 120, most: 200_000, meaning: "of load in each test" },
  seed: { usual: 1, most: 1_000_000, isWhole: true, meaning: "decides what is asked for, and what fails" },
});
const env = { ...process.env, CUDASHM_STRESS_SECONDS: String(seconds), CUDASHM_STRESS_SEED: String(seed) };
const vitest = join(root, "node_modules", ".bin", "vitest");
// One after the other: each is about what a machine does that has nothing else to do.
const args = ["run", "--no-file-parallelism", "test/stress"];
process.exitCode = spawnSync(vitest, args, { cwd: root, env, stdio: "inherit" }).status ?? 1;
