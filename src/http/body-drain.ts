import type { IncomingMessage } from "node:http";

/** How unread bodies are thrown away. */
export interface BodyDrainLimits {
  /** Bodies drained at a time, small ones not counted. */
  readonly concurrent: number;
  /** Bytes up to which a declared body is small. */
  readonly smallBytes: number;
  readonly timeoutMs: number;
}

export const defaultBodyDrainLimits: BodyDrainLimits = {
  concurrent: 16,
  smallBytes: 1024 * 1024,
  timeoutMs: 30_000,
};

export interface Drained {
  readonly bytes: number;
  /** False if the drain was refused or given up: the connection can carry no further request. */
  readonly complete: boolean;
}

/**
 * Reads bodies that nobody wants, so that the next request on the connection can be read. Bounded, since a
 * client can send for ever.
 */
export class BodyDrain {
  readonly #limits: BodyDrainLimits;
  #active = 0;

  constructor(limits: BodyDrainLimits = defaultBodyDrainLimits) {
    this.#limits = limits;
  }

  /** Whether a body of this declared length would be drained now. */
  hasRoomFor(declaredLength: number | null): boolean {
    return this.#isSmall(declaredLength) || this.#active < this.#limits.concurrent;
  }

  /** Throws away what is left of a body; refuses at once if there is no room. */
  drain(incoming: IncomingMessage, declaredLength: number | null): Promise<Drained> {
    if (incoming.readableEnded) return Promise.resolve({ bytes: 0, complete: true });
    const { socket } = incoming;
    // Of a client that is gone nothing more is heard, not even its end.
    if (incoming.destroyed || socket.destroyed || !this.hasRoomFor(declaredLength)) {
      return Promise.resolve({ bytes: 0, complete: false });
    }
    const weight = this.#isSmall(declaredLength) ? 0 : 1;
    this.#active += weight;
    return new Promise((resolve) => {
      let bytes = 0;
      const count = (piece: Buffer) => {
        bytes += piece.byteLength;
      };
      const settle = () => {
        clearTimeout(timer);
        incoming.off("data", count);
        incoming.off("end", settle);
        incoming.off("close", settle);
        socket.off("close", settle);
        this.#active -= weight;
        resolve({ bytes, complete: incoming.readableEnded });
      };
      const timer = setTimeout(settle, this.#limits.timeoutMs);
      incoming.on("data", count);
      incoming.on("end", settle);
      incoming.on("close", settle);
      // A request that was answered in full is told of its connection's end no more.
      socket.on("close", settle);
      incoming.resume();
    });
  }

  #isSmall(declaredLength: number | null): boolean {
    return declaredLength !== null && declaredLength <= this.#limits.smallBytes;
  }
}
