import type { RegistryError } from "../core/errors.js";
import { exiting } from "../core/refusals.js";
import { UnreadAnswers } from "./unread-answers.js";

/** A call that can be ended from outside. */
export interface OpenCall {
  abort(reason: RegistryError): void;
}

/**
 * The calls there are, and those of them that hear of the service's stop. One listener for all of them: AbortSignal.any would cost each
 * call a signal that the runtime keeps as long as the service's own.
 */
export class OpenCalls {
  readonly unread = new UnreadAnswers();
  readonly #calls = new Set<OpenCall>();
  readonly #shutdown: AbortSignal;
  #atWork = 0;

  constructor(shutdown: AbortSignal) {
    this.#shutdown = shutdown;
    shutdown.addEventListener("abort", () => this.#abortAll(), { once: true });
  }

  /** Whether every call that began was answered, as far as that is for the service to do. */
  get isIdle(): boolean {
    return this.#atWork === 0;
  }

  begin(): void {
    this.#atWork++;
  }

  end(): void {
    this.#atWork--;
  }

  /** From now on the call hears of the stop. */
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
