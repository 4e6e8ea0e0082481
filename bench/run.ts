// `npm run bench`: measures the cases that its arguments name, prints a table of each and keeps all of it as JSON.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createCudaDriver } from "../dist/index.js";
import type { Bench, Case } from "./case.js";
import { cases } from "./cases.js";
import { chooseCores, describeMachine } from "./machine.js";
import { type BenchOptions, matching, noSuchRow, readBenchOptions, usage } from "./options.js";
import { WorkerProcess } from "./processes/worker-process.js";
import { type CaseResult, formatCase, formatTally } from "./report.js";
import { runRow } from "./rounds.js";

const results = fileURLToPath(new URL("../bench/results", import.meta.url));
const loadScript = fileURLToPath(new URL("load/load.js", import.meta.url));

try {
  await run(readBenchOptions(process.argv.slice(2)));
} catch (error) {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}

async function run(options: BenchOptions): Promise<void> {
  const wanted = matching(cases, options.cases);
  if (options.help) return void process.stdout.write(usage);
  if (options.list) {
    for (const { name, title } of wanted) console.log(`${name.padEnd(14)}${title}`);
    return;
  }
  const cores = chooseCores();
  const machine = describeMachine(cores);
  if (!options.json) for (const [what, value] of Object.entries(machine)) console.log(`* ${what}: ${value}`);

  await using load = new WorkerProcess(loadScript, { core: cores.load });
  const driver = createCudaDriver({ preference: "emulated", contextLingerMs: 0 });
  const measured: CaseResult[] = [];
  const rowNames: string[] = [];
  for (const one of wanted) {
    const result = await runCase(one, options, { cores, load, driver }, rowNames);
    measured.push(result);
    if (!options.json && result.rows.length > 0) console.log(`\n${formatCase(result)}`);
  }
  // Nothing was measured, which is no run to keep in place of the last one.
  if (measured.every(({ rows }) => rows.length === 0)) throw new Error(noSuchRow(options.row, rowNames));
  const { rounds, seconds } = options;
  const json = JSON.stringify({ machine, rounds, seconds, cases: measured }, null, 2);
  if (!options.tiny) {
    mkdirSync(results, { recursive: true });
    writeFileSync(join(results, "latest.json"), json);
  }
  console.log(options.json ? json : `\n${formatTally(measured)}`);
}

/** Measures those of the case's rows that are wanted. Adds the names of all of them to `rowNames`. */
async function runCase(
  { name, title, rows }: Case,
  { row: rowWanted, rounds, seconds, tiny, profile }: BenchOptions,
  parts: Pick<Bench, "cores" | "load" | "driver">,
  rowNames: string[],
): Promise<CaseResult> {
  const profileFolder = profile ? join(results, "profiles", name) : null;
  if (profileFolder !== null) rmSync(profileFolder, { recursive: true, force: true });
  const progress = (text: string) => process.stderr.write(`bench: ${name}: ${text}\n`);
  const measured: CaseResult["rows"][number][] = [];
  for await (const row of rows({ ...parts, seconds, isTiny: tiny, profileFolder, progress })) {
    rowNames.push(row.name);
    if (!row.name.includes(rowWanted)) continue;
    progress(row.name);
    measured.push("skipped" in row ? row : await runRow(row, rounds));
  }
  return { name, title, rows: measured };
}
