/**
 * Collects the pieces of a body. Copies them as they come, since thousands of tiny pieces kept as they are
 * would take a hundred times their bytes; a body that comes in one piece is not copied.
 */
export class GrowingBuffer {
  #bytes: Uint8Array = new Uint8Array();
  #owned = false;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  append(piece: Uint8Array): void {
    const end = this.#length + piece.byteLength;
    if (this.#length === 0) {
      this.#bytes = piece;
    } else {
      if (!this.#owned || end > this.#bytes.byteLength) this.#grow(end);
      this.#bytes.set(piece, this.#length);
    }
    this.#length = end;
  }

  /** What was appended. Valid until the next append. */
  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  #grow(end: number): void {
    const grown = new Uint8Array(2 * end);
    grown.set(this.bytes);
    this.#bytes = grown;
    this.#owned = true;
  }
}
