import { SeededRandom } from "./seeded-random.js";

/** What a test does unless CUDASHM_KILL_SEED and CUDASHM_KILL_ROUNDS say otherwise. */
interface Rounds {
  readonly seed: number;
  readonly rounds: number;
}

/** Runs rounds one after the other, each with numbers of its own; a failure says which. Resolves with how many. */
export async function inRounds(
  usual: Rounds,
  round: (random: SeededRandom, number: number) => Promise<void>,
): Promise<number> {
  const seed = Number(process.env.CUDASHM_KILL_SEED ?? usual.seed);
  const rounds = Number(process.env.CUDASHM_KILL_ROUNDS ?? usual.rounds);
  for (let number = 0; number < rounds; number++) {
    try {
      await round(new SeededRandom(seed * 1_000_003 + number), number);
    } catch (error) {
      if (error instanceof Error) {
        error.message = `round ${number} of CUDASHM_KILL_SEED=${seed}: ${error.message}`;
      }
      throw error;
    }
  }
  return rounds;
}
