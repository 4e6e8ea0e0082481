import { problemOf } from "../stress/expected-answers.js";
import { HttpFaceClient } from "../stress/http-face-client.js";
import { LoadedService, type Rest } from "../stress/loaded-service.js";
import { runMixedLoad } from "../stress/mixed-load.js";
import { memoryVariables, SharedMemories } from "../stress/shared-memory.js";
import { afterWarmUp, growthAlongTrend } from "./drift.js";
import { lineOf, type Sample } from "./sample.js";

export interface SoakOptions {
  readonly seconds: number;
  /** Seconds of load between two samples. */
  readonly every: number;
  readonly seed: number;
  /** Is given a line for each sample. */
  readonly print: (line: string) => void;
}

const clients = 32;
const names = Array.from({ length: 32 }, (_, number) => `name ${number}`);
const mostGrowthBytes = 48 * 1024 * 1024;
const fewestPoints = 5;
const toldProblems = 5;

/** How late the event loop is seen to be when it is not late at all, in milliseconds. */
const loopResolutionMs = 10;

/** Keeps a service under steady load and looks at what it has every so often. Resolves with what is wrong, if anything is. */
export async function soak({ seconds, every, seed, print }: SoakOptions): Promise<readonly string[]> {
  await using memories = await SharedMemories.create(8, 64 * 1024);
  const args = ["--orphan-grace-secs=0", "--context-linger-secs=0"];
  await using service = await LoadedService.start(args, { ...memoryVariables, ...driverVariables() });
  const load = { service, memories: memories.all, names, clients, seconds: every };
  const samples: Sample[] = [];
  let rest: Rest | undefined;

  for (let round = 0; round * every < seconds; round++) {
    const problems: string[] = [];
    let requests = 0;
    const begun = performance.now();
    await runMixedLoad({
      ...load,
      seed: seed * 100_000 + round,
      onOutcome(outcome) {
        requests++;
        const problem = problemOf(outcome, false);
        if (problem !== null) problems.push(problem);
      },
    });
    const requestsPerSecond = (requests * 1000) / (performance.now() - begun);
    // Before any other look, which would begin the time of the delays anew.
    const metrics = await service.metrics();
    problems.push(...(await unregisterAll(service)));
    try {
      if (rest === undefined) rest = await service.atRest();
      else await service.untilQuiet(rest);
    } catch (error) {
      problems.push((error as Error).message);
    }
    const { residentBytes, files } = service.footprint();
    const sample = {
      at: (round + 1) * every,
      residentBytes,
      heapBytes: metrics.value("nodejs_heap_size_used_bytes"),
      files,
      loopDelayMs: Math.max(0, metrics.value("nodejs_eventloop_lag_p99_seconds") * 1000 - loopResolutionMs),
      regions: metrics.sum("cudashm_regions"),
      openHandles: service.calls.openHandles(),
      requestsPerSecond,
      errors: problems.length,
    };
    samples.push(sample);
    print(lineOf(sample));
    const wrong = [...problems.slice(0, toldProblems), ...whatDrifts(samples, seconds), ...faultsOf(service)];
    if (wrong.length > 0) return wrong;
    service.calls.forget();
  }
  const { code, signal } = await service.stop();
  return code === 0 ? [] : [`the service ended with ${signal ?? `code ${code}`}: ${service.errorText}`];
}

/** What the emulated driver is to do, as it was told to whoever soaks. */
function driverVariables(): Readonly<Record<string, string | undefined>> {
  const set = Object.entries(process.env).filter(([name]) => name.startsWith("CUDASHM_EMULATED_"));
  return Object.fromEntries(set);
}

async function unregisterAll(service: LoadedService): Promise<readonly string[]> {
  using http = new HttpFaceClient(service.httpAddress);
  const { code, text } = await http.call({ op: "unregisterAll" }, null, null);
  return code === "OK" ? [] : [`unregistering all was answered ${code}: ${text}`];
}

function whatDrifts(samples: readonly Sample[], totalSeconds: number): readonly string[] {
  const wrong: string[] = [];
  const openHandles = samples.at(-1)?.openHandles ?? 0;
  if (openHandles !== 0) wrong.push(`opens - closes is ${openHandles} with every region unregistered`);
  const sizes = afterWarmUp(
    samples.map(({ at, residentBytes }) => ({ at, value: residentBytes })),
    totalSeconds,
  );
  const growth = growthAlongTrend(sizes);
  if (sizes.length >= fewestPoints && growth > mostGrowthBytes) {
    const [first, last] = [sizes[0], sizes.at(-1)];
    const mebibytes = (growth / 1024 / 1024).toFixed(1);
    wrong.push(`RSS grew by ${mebibytes} MiB along its trend, from ${first?.at} s to ${last?.at} s`);
  }
  return wrong;
}

function faultsOf({ warnings }: LoadedService): readonly string[] {
  const faults = warnings.filter(({ level }) => Number(level) >= 50);
  return faults.slice(0, toldProblems).map((line) => `the log has a fault: ${JSON.stringify(line)}`);
}
