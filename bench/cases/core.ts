import { fileURLToPath } from "node:url";
import type { Bench, Case, Contender, Row, Sample, Skipped } from "../case.js";
import { buildDriverProgram, driverPairMicros } from "../core/driver-program.js";
import type { PairsQuestion } from "../core/pairs.js";
import { type ExportedMemory, exportMemory } from "../memory.js";
import { WorkerProcess } from "../processes/worker-process.js";

const script = fileURLToPath(new URL("../core/pairs.js", import.meta.url));

const names = {
  registry: "registry on the emulated driver",
  native: "native open and close",
  driver: "the driver's calls, from C++",
  nothing: "registry on a driver that does nothing",
} as const;

/** The core alone. On one core everything that a pair costs is in its time, whichever thread it is on. */
export const core: Case = {
  name: "core",
  title: "register + unregister without a transport",

  async *rows(bench: Bench): AsyncGenerator<Row | Skipped> {
    await using memory = await exportMemory(bench, 32);
    await using registry = startPairs(bench, "registry");
    await using native = startPairs(bench, "native");
    await using nothing = startPairs(bench, "nothing");
    try {
      buildDriverProgram();
    } catch (error) {
      yield { name: "shares of a pair", skipped: `no C++ compiler: ${(error as Error).message}` };
      return;
    }
    for (const outstanding of [1, 32]) {
      const measured = (name: string, worker: WorkerProcess): Contender => ({
        name,
        measure: () => pairs(bench, worker, memory, outstanding),
      });
      yield {
        name: `a pair, outstanding: ${outstanding}`,
        unit: "us a pair",
        better: "less",
        contenders: [
          measured(names.registry, registry),
          measured(names.native, native),
          {
            name: names.driver,
            async measure() {
              const handle = memory.handles[0] ?? Buffer.alloc(0);
              return { value: await driverPairMicros(bench.cores, bench.seconds, handle) };
            },
          },
          measured(names.nothing, nothing),
        ],
        derive: shares,
        targets: [{ figure: "TypeScript us", below: 20, of: "median" }],
      };
    }
  },
};

function startPairs({ cores, profileFolder }: Bench, kind: "registry" | "native" | "nothing"): WorkerProcess {
  const profile = [
    "--cpu-prof",
    `--cpu-prof-dir=${profileFolder}`,
    `--cpu-prof-name=pairs-${kind}.cpuprofile`,
  ];
  return new WorkerProcess(script, {
    core: cores.server,
    nodeArgs: profileFolder === null ? [] : profile,
    args: [kind],
  });
}

async function pairs(
  { seconds }: Bench,
  worker: WorkerProcess,
  { handles, byteSize }: ExportedMemory,
  outstanding: number,
): Promise<Sample> {
  const question: PairsQuestion = {
    op: "pairs",
    seconds,
    handles: handles.slice(0, outstanding).map((handle) => handle.toString("base64")),
    byteSize,
  };
  return { value: await worker.ask<number>(question) };
}

/** What a pair's time goes into, each part by what is missing without it. */
function shares(round: ReadonlyMap<string, Sample>): Record<string, number> {
  const value = (name: string) => round.get(name)?.value ?? Number.NaN;
  const driver = value(names.driver);
  const handOver = value(names.native) - driver;
  const typeScript = value(names.registry) - value(names.native);
  return { "driver us": driver, "native hand-over us": handOver, "TypeScript us": typeScript };
}
