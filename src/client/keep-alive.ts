import { CudaSharedMemoryError, type CudaSharedMemoryErrorCode } from "./errors.js";
import type { Region } from "./region.js";
import { linkSignals } from "./signals.js";

export interface KeepAliveOptions {
  /** Ends it. The region stays until its lease runs out: unregister it if that is too late. */
  readonly signal: AbortSignal;
  /** The lease from now on; as long as it was if left out. */
  readonly leaseMs?: number | undefined;
  /** The registration that is meant; the one there is at the beginning if left out. */
  readonly generation?: bigint | number | undefined;
  /** Told of each renewal that failed and is tried again. */
  readonly onError?: ((error: CudaSharedMemoryError) => void) | undefined;
}

/** Calls `run` once, so many milliseconds from now, unless the returned function was called before. */
export type StartTimer = (ms: number, run: () => void) => () => void;

/** Renews the lease once. */
export type Renew = (options: {
  readonly leaseMs: number | undefined;
  readonly generation: bigint | number | undefined;
  readonly signal: AbortSignal;
}) => Promise<Region>;

/** Refusals of a moment, after which the region may still be there. */
const passing: ReadonlySet<CudaSharedMemoryErrorCode> = new Set([
  "UNAVAILABLE",
  "DEADLINE_EXCEEDED",
  "RESOURCE_EXHAUSTED",
  "INTERNAL",
]);

/** See the client's `keepAlive`. */
export async function keepAlive(
  renew: Renew,
  { signal, leaseMs, onError, ...options }: KeepAliveOptions,
  startTimer: StartTimer = systemTimer,
): Promise<void> {
  let { generation } = options;
  let third: number | undefined;
  while (!signal.aborted) {
    const limited = limit(signal, third, startTimer);
    let pause: number;
    try {
      const region = await renew({ leaseMs, generation, signal: limited.signal });
      generation = region.generation;
      third = (region.leaseMs ?? 0) / 3;
      pause = third;
    } catch (error) {
      if (signal.aborted) return;
      // Before the first answer nothing says how long to wait.
      if (third === undefined || !isPassing(error)) throw error;
      onError?.(error);
      pause = third / 3;
    } finally {
      limited.end();
    }
    await wait(pause, signal, startTimer);
  }
}

function isPassing(error: unknown): error is CudaSharedMemoryError {
  return error instanceof CudaSharedMemoryError && passing.has(error.code);
}

/** A renewal that takes too long is given up, so that the next one is in time. */
function limit(signal: AbortSignal, ms: number | undefined, startTimer: StartTimer) {
  const aborter = new AbortController();
  const { signal: linked, unlink } = linkSignals([signal, aborter.signal]);
  const tooLong = () => aborter.abort(new DOMException("the renewal took too long", "TimeoutError"));
  const cancel = ms === undefined ? () => {} : startTimer(ms, tooLong);
  return {
    signal: linked,
    end() {
      cancel();
      unlink();
    },
  };
}

function wait(ms: number, signal: AbortSignal, startTimer: StartTimer): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      cancel();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const cancel = startTimer(ms, done);
    signal.addEventListener("abort", done);
    if (signal.aborted) done();
  });
}

function systemTimer(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
}
