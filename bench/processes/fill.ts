import type { Bench } from "../case.js";
import type { FillJob } from "../load/jobs.js";
import type { ServerProcess } from "./server.js";

/** Registers `count` regions from `region-<first>` on, on the allocations of `bodies` in turn. */
export async function fill(
  bench: Bench,
  { httpPort }: ServerProcess,
  count: number,
  bodies: readonly string[],
  first = 0,
): Promise<void> {
  const job: FillJob = { op: "fill", port: httpPort, first, count, bodies };
  await bench.load.ask(job);
}
