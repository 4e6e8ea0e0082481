import { createHash, timingSafeEqual } from "node:crypto";

/** A secret that can be compared with and not be read: the SHA-256 of a text. */
export class SecretDigest {
  readonly #digest: Buffer;

  /** Of the 32 bytes of a digest. */
  constructor(digest: Buffer) {
    this.#digest = digest;
  }

  /** Of the text itself. */
  static of(text: string): SecretDigest {
    return new SecretDigest(createHash("sha256").update(text).digest());
  }

  /** In hex, to look a secret up by: only for one that is random and too long to guess. */
  get hex(): string {
    return this.#digest.toString("hex");
  }

  /** Takes as long whatever the two have in common: digests are of one length, and no byte decides alone. */
  equals(other: SecretDigest): boolean {
    return timingSafeEqual(this.#digest, other.#digest);
  }
}
