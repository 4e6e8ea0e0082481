import { RegistryError } from "../core/errors.js";

/** Smaller answers need not be counted: a client has to leave very many unread before they matter. */
export const largeAnswerBytes = 64 * 1024;

/** Bytes of answers that one client may leave unread. */
const defaultMaxBytes = 64 * 1024 * 1024;

/** The answers that wait in memory for their clients to read them. */
export class UnreadAnswers {
  readonly #maxBytes: number;
  /** By the client's address and port, so that each connection has its own, but for those of a Unix socket. */
  readonly #bytes = new Map<string, number>();

  constructor(maxBytes = defaultMaxBytes) {
    this.#maxBytes = maxBytes;
  }

  /** Counts an answer until the returned function is called. Throws RESOURCE_EXHAUSTED if it is one too many. */
  add(peer: string, { byteLength }: Uint8Array): () => void {
    const waiting = this.#bytes.get(peer) ?? 0;
    // One alone may be of any size.
    if (waiting > 0 && waiting + byteLength > this.#maxBytes) {
      throw new RegistryError(
        "RESOURCE_EXHAUSTED",
        `answers of ${waiting} bytes wait for this client to read them; call again once it has`,
      );
    }
    this.#bytes.set(peer, waiting + byteLength);
    return () => {
      const rest = (this.#bytes.get(peer) ?? 0) - byteLength;
      if (rest > 0) this.#bytes.set(peer, rest);
      else this.#bytes.delete(peer);
    };
  }
}
