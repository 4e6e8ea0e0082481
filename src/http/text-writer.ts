import type { ServerResponse } from "node:http";
import { type CallSignal, listenForAbort } from "../core/abort.js";
import type { Clock } from "../core/clock.js";
import { clientGone } from "./errors.js";

/** How long a client may take nothing, in milliseconds. */
export interface Patience {
  readonly clock: Clock;
  readonly patienceMs: number;
  /** The same once the service stops. */
  readonly exitPatienceMs: number;
}

/** Writes an answer bit by bit, no faster than its client takes it, and cuts the connection of one that takes nothing. */
export class TextWriter {
  readonly #outgoing: ServerResponse;
  /** Aborted when the client is gone or the service stops. */
  readonly #signal: CallSignal;
  readonly #patience: Patience;

  constructor(outgoing: ServerResponse, signal: CallSignal, patience: Patience) {
    this.#outgoing = outgoing;
    this.#signal = signal;
    this.#patience = patience;
  }

  /** Resolves when the kernel has the text. Rejects with CANCELLED if the client is gone, or was cut off. */
  write(text: string): Promise<void> {
    return this.#untilTaken((taken) => this.#outgoing.write(text, taken));
  }

  /** Resolves when the kernel has all of the answer. Rejects as `write` does. */
  end(): Promise<void> {
    return this.#untilTaken((taken) => this.#outgoing.end(taken));
  }

  #untilTaken(send: (taken: (error?: Error | null) => void) => void): Promise<void> {
    const { clock, patienceMs, exitPatienceMs } = this.#patience;
    const signal = this.#signal;
    return new Promise((resolve, reject) => {
      const settle = () => {
        cancel();
        stopListening();
      };
      const giveUp = () => {
        settle();
        this.#outgoing.destroy();
        reject(clientGone());
      };
      let cancel = clock.after(signal.aborted ? exitPatienceMs : patienceMs, giveUp);
      const stopListening = listenForAbort(signal, () => {
        cancel();
        cancel = clock.after(exitPatienceMs, giveUp);
      });
      send((error) => {
        settle();
        if (error) reject(clientGone());
        else resolve();
      });
    });
  }
}
