/** How long a test makes load, and with which numbers. */
export interface StressPlan {
  readonly seed: number;
  readonly seconds: number;
  /** For what hangs, not for what is slow. */
  readonly timeout: number;
}

/** What CUDASHM_STRESS_SEED and CUDASHM_STRESS_SECONDS say, else what is usual; `npm run stress` sets them. */
export function stressPlan(usual: { readonly seed: number; readonly seconds: number }): StressPlan {
  const seconds = Number(process.env.CUDASHM_STRESS_SECONDS ?? usual.seconds);
  return {
    seed: Number(process.env.CUDASHM_STRESS_SEED ?? usual.seed),
    seconds,
    timeout: 300_000 + 10_000 * seconds,
  };
}
