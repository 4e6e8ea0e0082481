import type { IncomingMessage } from "node:http";
import { clientGone } from "./errors.js";

type Next = IteratorResult<Uint8Array, undefined>;

interface Waiting {
  readonly resolve: (next: Next) => void;
  readonly reject: (error: Error) => void;
}

const done: Next = { done: true, value: undefined };

/**
 * A body piece by piece, as fast as they are asked for, one at a time. Throws CANCELLED if the client goes away.
 * A stream's own iterator chains its promises, which keeps pieces until the collector goes through the whole heap:
 * with a fast client that is most of what it costs to take them.
 */
export class BodyPieces implements AsyncIterableIterator<Uint8Array, undefined> {
  readonly #incoming: IncomingMessage;
  readonly #pieces: Uint8Array[] = [];
  #waiting: Waiting | undefined;
  #hasEnded = false;
  #isGone = false;

  constructor(incoming: IncomingMessage) {
    this.#incoming = incoming;
    incoming.on("data", this.#onData);
    incoming.on("end", this.#onEnd);
    incoming.on("close", this.#onClose);
    if (incoming.readableEnded) this.#hasEnded = true;
    else if (incoming.destroyed) this.#isGone = true;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Next> {
    const piece = this.#pieces.shift();
    if (piece !== undefined) return Promise.resolve({ done: false, value: piece });
    if (this.#hasEnded) return Promise.resolve(done);
    if (this.#isGone) return Promise.reject(clientGone());
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#incoming.resume();
    });
  }

  /** Leaves the rest of the body where it is. */
  async return(): Promise<Next> {
    this.#stop();
    return done;
  }

  readonly #onData = (piece: Uint8Array): void => {
    this.#incoming.pause();
    if (this.#waiting === undefined) this.#pieces.push(piece);
    else this.#settle(({ resolve }) => resolve({ done: false, value: piece }));
  };

  readonly #onEnd = (): void => {
    this.#hasEnded = true;
    this.#settle(({ resolve }) => resolve(done));
  };

  readonly #onClose = (): void => {
    if (!this.#hasEnded) this.#isGone = true;
    this.#settle(({ reject }) => reject(clientGone()));
  };

  #settle(settle: (waiting: Waiting) => void): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting !== undefined) settle(waiting);
  }

  #stop(): void {
    this.#incoming.pause();
    this.#incoming.off("data", this.#onData);
    this.#incoming.off("end", this.#onEnd);
    this.#incoming.off("close", this.#onClose);
  }
}
