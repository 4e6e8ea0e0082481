import type { RegistryError } from "../core/errors.js";
import { exiting } from "../core/refusals.js";

/** A call that can be ended from outside. */
export interface OpenCall {
  abort(reason: RegistryError): void;
}

/**
 * The calls that hear of the service's stop. One listener for all of them: AbortSignal.any would cost each
 * call a signal that the runtime keeps as long as the service's own.
 */
export class OpenCalls {
  readonly #calls = new Set<OpenCall>();
  readonly #shutdown: AbortSignal;

  constructor(shutdown: AbortSignal) {
    this.#shutdown = shutdown;
    shutdown.addEventListener("abort", () => this.#abortAll(), { once: true });
  }

  add(call: OpenCall): void {
    if (this.#shutdown.aborted) call.abort(exiting());
    else this.#calls.add(call);
  }

  delete(call: OpenCall): void {
    this.#calls.delete(call);
  }

  #abortAll(): void {
    for (const call of this.#calls) call.abort(exiting());
    this.#calls.clear();
  }
}
