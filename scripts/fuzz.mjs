// `npm run fuzz [-- TARGET...] [--seconds N] [--seed N]`: made-up input for whatever takes input from outside, each
// property for N seconds, 60 unless given. `npm test` tries the same properties with a few inputs, always the same.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { libFuzzerCompiler } from "./libfuzzer-compiler.mjs";
import { root } from "./tree-hash.mjs";

const suffix = ".test.ts";
/** The parsers in C++, which are no test of vitest's. */
const native = "native";
const targets = readdirSync(join(root, "test", "fuzz"))
  .filter((name) => name.endsWith(suffix))
  .map((name) => name.slice(0, -suffix.length));

const { values, positionals } = readArguments();
const seconds = positive("seconds", values.seconds ?? "60");
const seed = positive("seed", values.seed ?? String(1 + Math.floor(Math.random() * (2 ** 31 - 2))));
const wanted = positionals.length > 0 ? positionals : [...targets, native];
for (const target of wanted) {
  if (![...targets, native].includes(target)) usage(`there is no target ${target}`);
}

process.stdout.write(`seed ${seed}, ${seconds} s for each property\n`);
const files = wanted.filter((target) => target !== native).map((target) => `test/fuzz/${target}${suffix}`);
const env = { ...process.env, CUDASHM_FUZZ_SECONDS: String(seconds), CUDASHM_FUZZ_SEED: String(seed) };
const outcomes = [];
if (files.length > 0) outcomes.push(run(join(root, "node_modules", ".bin", "vitest"), ["run", ...files]));
if (wanted.includes(native)) outcomes.push(make("check"), libFuzzer());
process.exitCode = outcomes.every((status) => status === 0) ? 0 : 1;

function run(file, args) {
  return spawnSync(file, args, { cwd: root, stdio: "inherit", env }).status;
}

function make(...args) {
  return run("make", ["-s", "-C", "native/fuzz", ...args, `SECONDS=${seconds}`, `SEED=${seed}`]);
}

/** One target goes on where another one failed. */
function libFuzzer() {
  const compiler = libFuzzerCompiler();
  if (compiler !== null) return make("-k", "libfuzzer", `CLANG=${compiler}`);
  process.stderr.write(
    "fuzz: libFuzzer is left out: no clang++ here has it (Debian: apt-get install clang-14 libclang-rt-14-dev)\n",
  );
  return 0;
}

function readArguments() {
  const text = { type: "string" };
  try {
    return parseArgs({ options: { seconds: text, seed: text }, allowPositionals: true });
  } catch (error) {
    return usage(error.message);
  }
}

function positive(name, text) {
  const number = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  if (number >= 1 && number < 2 ** 31) return number;
  return usage(`--${name} must be a whole number from 1 to ${2 ** 31 - 1}`);
}

function usage(problem) {
  process.stderr.write(`fuzz: ${problem}\n`);
  process.stderr.write("usage: npm run fuzz [-- TARGET...] [--seconds N] [--seed N]\n");
  process.stderr.write(`targets: ${[...targets, native].join(", ")}; all of them unless named\n`);
  process.exit(2);
}
