import fc from "fast-check";

const seconds = Number(process.env.CUDASHM_FUZZ_SECONDS ?? 0);
const firstSeed = Number(process.env.CUDASHM_FUZZ_SEED ?? 6);

/**
 * Fails unless the property holds for `runs` inputs, which are the same each time, or, under `npm run fuzz`, for so
 * many of one seed after the other until the time is over. No run is left half done.
 */
export async function holds<Inputs>(property: fc.IRawProperty<Inputs>, runs: number): Promise<void> {
  const end = Date.now() + seconds * 1000;
  let seed = firstSeed;
  do await fc.assert(property, { seed: seed++ | 0, numRuns: runs });
  while (Date.now() < end);
}

/** For a test of one property, in milliseconds: one that fails takes its time to find a short input that does. */
export const timeout = 60_000 + 2 * seconds * 1000;
