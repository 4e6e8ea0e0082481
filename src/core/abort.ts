import { setMaxListeners } from "node:events";
import { RegistryError } from "./errors.js";

/** What tells a call that nobody waits for it any more: as much of an AbortSignal as the registry looks at. */
export interface CallSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/** A signal, and what aborts it. An AbortController does as much, and costs as much as the rest of a small call. */
export class CallAbort implements CallSignal {
  aborted = false;
  reason: unknown;
  #listeners: (() => void)[] = [];

  addEventListener(_type: "abort", listener: () => void): void {
    if (!this.aborted) this.#listeners.push(listener);
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    const index = this.#listeners.indexOf(listener);
    if (index !== -1) this.#listeners.splice(index, 1);
  }

  /** The second time does nothing. */
  abort(reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const listener of listeners) listener();
  }
}

/** What an aborted call is answered: a RegistryError given as the reason is passed on as it is. */
export function abortError(signal: CallSignal): RegistryError {
  const reason: unknown = signal.reason;
  if (reason instanceof RegistryError) return reason;
  if (reason instanceof DOMException && reason.name === "TimeoutError") {
    return new RegistryError("DEADLINE_EXCEEDED", "the deadline passed before the call was done");
  }
  return new RegistryError("CANCELLED", "the call was cancelled");
}

/** Calls `onAbort` when `signal` is aborted, unless the function that it returns was called before. */
export function listenForAbort(
  signal: CallSignal | undefined,
  onAbort: (signal: CallSignal) => void,
): () => void {
  if (signal === undefined) return noop;
  // One signal may serve any number of calls at once, and Node takes more than ten listeners for a leak.
  if (signal instanceof AbortSignal) setMaxListeners(0, signal);
  const listener = () => onAbort(signal);
  signal.addEventListener("abort", listener);
  return () => signal.removeEventListener("abort", listener);
}

/** Resolves when `done` does or when `signal` is aborted, whichever is first. */
export async function untilDoneOrAborted(done: Promise<void>, signal: CallSignal | undefined): Promise<void> {
  if (signal === undefined) return done;
  if (signal.aborted) return;
  let stopListening = () => {};
  const aborted = new Promise<void>((resolve) => {
    stopListening = listenForAbort(signal, () => resolve());
  });
  await Promise.race([done, aborted]).finally(stopListening);
}

/** What `done` resolves with, unless `signal` is aborted first: then it rejects with {@link abortError}. */
export async function orAborted<T>(done: Promise<T>, signal: CallSignal): Promise<T> {
  const settled = done.then(
    () => {},
    () => {},
  );
  await untilDoneOrAborted(settled, signal);
  if (signal.aborted) throw abortError(signal);
  return done;
}

function noop(): void {}
