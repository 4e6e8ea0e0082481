// `npm run soak -- --minutes N`: a service under steady load of mixed calls, with a line every so often (`--every`, in
// seconds) of what it has then. Ends with 1, saying what is wrong, when that drifts. `--seed` makes it another load;
// CUDASHM_EMULATED_ variables are the service's.
import { parseArgs } from "node:util";
import { runnerImport } from "vite";
import { root } from "./tree-hash.mjs";

const numbers = { minutes: "10", every: "10", seed: "1" };
const { values } = parseArgs({
  options: Object.fromEntries(
    Object.entries(numbers).map(([name, usual]) => [name, { type: "string", default: usual }]),
  ),
});
for (const [name, text] of Object.entries(values)) {
  if (!(Number(text) > 0)) throw new Error(`--${name} takes a number greater than 0, not '${text}'`);
}

// Shares its load with the tests, which are TypeScript.
const { module } = await runnerImport("./test/soak/soak.ts", {
  root,
  configFile: false,
  logLevel: "error",
  oxc: { target: "es2022" },
});
const wrong = await module.soak({
  seconds: Number(values.minutes) * 60,
  every: Number(values.every),
  seed: Number(values.seed),
  print: (line) => process.stdout.write(`${line}\n`),
});
for (const what of wrong) process.stdout.write(`failed: ${what}\n`);
process.stdout.write(wrong.length === 0 ? "nothing drifts\n" : "it drifts\n");
process.exitCode = wrong.length === 0 ? 0 : 1;
