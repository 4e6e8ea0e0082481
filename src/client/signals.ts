/** A signal that is aborted with the first of several, until it is unlinked from them. */
export interface LinkedSignal {
  readonly signal: AbortSignal;
  unlink(): void;
}

/** AbortSignal.any would leave a trace of every call on a signal that outlives it. */
export function linkSignals(given: readonly (AbortSignal | undefined)[]): LinkedSignal {
  const signals = given.filter((signal) => signal !== undefined);
  const aborter = new AbortController();
  const onAbort = () => aborter.abort(signals.find((signal) => signal.aborted)?.reason);
  for (const signal of signals) signal.addEventListener("abort", onAbort);
  if (signals.some((signal) => signal.aborted)) onAbort();
  return {
    signal: aborter.signal,
    unlink() {
      for (const signal of signals) signal.removeEventListener("abort", onAbort);
    },
  };
}
