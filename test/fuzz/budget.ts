import type fc from "fast-check";

const seconds = Number(process.env.CUDASHM_FUZZ_SECONDS ?? 0);

/** What every made-up input follows from. */
export const seed = Number(process.env.CUDASHM_FUZZ_SEED ?? 6);

/** `npm test` tries a property `runs` times, always the same ones; `npm run fuzz` for as long as it is told to. */
export function budget<Inputs>(runs: number): fc.Parameters<Inputs> {
  if (seconds === 0) return { seed, numRuns: runs };
  return { seed, numRuns: 2 ** 31 - 1, interruptAfterTimeLimit: seconds * 1000 };
}

/** For a test of one property, in milliseconds: one that fails takes its time to find a short input that does. */
export const timeout = 60_000 + 2 * seconds * 1000;
