// `npm run soak -- --minutes N`: a service under steady load of mixed calls, with a line every so often (`--every`, in
// seconds) of what it has then. Ends with 1, saying what is wrong, when that drifts. `--seed` makes it another load;
// CUDASHM_EMULATED_ variables are the service's.
import { runnerImport } from "vite";
import { readNumberOptions } from "./number-options.mjs";
import { root } from "./tree-hash.mjs";

const { minutes, every, seed } = readNumberOptions("soak", {
  minutes: { usual: 10, most: 100_000, meaning: "of load" },
  every: { usual: 10, most: 100_000, meaning: "seconds from one look to the next" },
  seed: { usual: 1, most: 1_000_000, isWhole: true, meaning: "decides what is asked for" },
});

// Shares its load with the tests, which are TypeScript.
const { module } = await runnerImport("./test/soak/soak.ts", {
  root,
  configFile: false,
  logLevel: "error",
  oxc: { target: "es2022" },
});
const wrong = await module.soak({
  seconds: minutes * 60,
  every,
  seed,
  print: (line) => process.stdout.write(`${line}\n`),
});
for (const what of wrong) process.stdout.write(`failed: ${what}\n`);
process.stdout.write(wrong.length === 0 ? "nothing drifts\n" : "it drifts\n");
process.exitCode = wrong.length === 0 ? 0 : 1;
