/** Time as the core sees it, so that tests can be at any moment they like. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `run` once, `ms` milliseconds from now, unless the returned function was called before. */
  after(ms: number, run: () => void): () => void;
}

/** The time of day. What it is asked to call never keeps the process alive. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms).unref();
    return () => clearTimeout(timer);
  },
};
