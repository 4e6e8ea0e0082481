import { listenForAbort } from "../core/abort.js";

/** What was waited for did not come in time. */
export class Unanswered extends Error {
  override readonly name = "Unanswered";

  constructor(milliseconds: number) {
    super(`no answer within ${milliseconds / 1000} s (--timeout-secs)`);
  }
}

/**
 * What `work` gives, if it does so in time. Rejects with Unanswered, or with the reason of `signal`; either
 * then aborts the signal that `work` was given.
 */
export async function within<T>(
  milliseconds: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const stop = new AbortController();
  // Not AbortSignal.timeout: its timer does not keep the process alive, and a hung driver call does neither.
  const timer = setTimeout(() => stop.abort(new Unanswered(milliseconds)), milliseconds);
  const stopListening = listenForAbort(signal, () => stop.abort(signal.reason));
  const stopped = new Promise<never>((_, reject) => {
    stop.signal.addEventListener("abort", () => reject(stop.signal.reason), { once: true });
  });
  try {
    return await Promise.race([work(stop.signal), stopped]);
  } finally {
    clearTimeout(timer);
    stopListening();
  }
}
