import { setMaxListeners } from "node:events";
import { RegistryError } from "./errors.js";

/** What an aborted call is answered: a RegistryError given as the reason is passed on as it is. */
export function abortError(signal: AbortSignal): RegistryError {
  const reason: unknown = signal.reason;
  if (reason instanceof RegistryError) return reason;
  if (reason instanceof DOMException && reason.name === "TimeoutError") {
    return new RegistryError("DEADLINE_EXCEEDED", "the deadline passed before the call was done");
  }
  return new RegistryError("CANCELLED", "the call was cancelled");
}

/** Calls `onAbort` when `signal` is aborted, unless the function that it returns was called before. */
export function listenForAbort(
  signal: AbortSignal | undefined,
  onAbort: (signal: AbortSignal) => void,
): () => void {
  if (signal === undefined) return () => {};
  // One signal may serve any number of calls at once, and Node takes more than ten listeners for a leak.
  setMaxListeners(0, signal);
  const listener = () => onAbort(signal);
  signal.addEventListener("abort", listener, { once: true });
  return () => signal.removeEventListener("abort", listener);
}

/** Resolves when `done` does or when `signal` is aborted, whichever is first. */
export async function untilDoneOrAborted(
  done: Promise<void>,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (signal === undefined) return done;
  if (signal.aborted) return;
  let stopListening = () => {};
  const aborted = new Promise<void>((resolve) => {
    stopListening = listenForAbort(signal, () => resolve());
  });
  await Promise.race([done, aborted]).finally(stopListening);
}

/** What `done` resolves with, unless `signal` is aborted first: then it rejects with {@link abortError}. */
export async function orAborted<T>(done: Promise<T>, signal: AbortSignal): Promise<T> {
  const settled = done.then(
    () => {},
    () => {},
  );
  await untilDoneOrAborted(settled, signal);
  if (signal.aborted) throw abortError(signal);
  return done;
}
