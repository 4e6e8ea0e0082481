// `npm run stress`: the tests of test/stress for as long as one likes (`--seconds` of load in each, 120 unless given),
// with other numbers (`--seed`). `npm test` runs them for a few seconds.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "./tree-hash.mjs";

const { values } = parseArgs({
  options: { seconds: { type: "string", default: "120" }, seed: { type: "string", default: "1" } },
});
for (const [name, text] of Object.entries(values)) {
  if (!(Number(text) > 0)) throw new Error(`--${name} takes a number greater than 0, not '${text}'`);
}
const env = { ...process.env, CUDASHM_STRESS_SECONDS: values.seconds, CUDASHM_STRESS_SEED: values.seed };
const vitest = join(root, "node_modules", ".bin", "vitest");
// One after the other: each is about what a machine does that has nothing else to do.
const args = ["run", "--no-file-parallelism", "test/stress"];
process.exitCode = spawnSync(vitest, args, { cwd: root, env, stdio: "inherit" }).status ?? 1;
