/** How long a test makes load, and with which numbers. */
export interface StressPlan {
  readonly seed: number;
  readonly seconds: number;
  /** Whether it is more than a glance. */
  readonly isFull: boolean;
}

/** What CUDASHM_STRESS_SEED and CUDASHM_STRESS_SECONDS say, else what is usual; `npm run stress` sets them. */
export function stressPlan(usual: { readonly seed: number; readonly seconds: number }): StressPlan {
  const { CUDASHM_STRESS_SEED: seed, CUDASHM_STRESS_SECONDS: seconds } = process.env;
  return {
    seed: Number(seed ?? usual.seed),
    seconds: Number(seconds ?? usual.seconds),
    isFull: seconds !== undefined,
  };
}
