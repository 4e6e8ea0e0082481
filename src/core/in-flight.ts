import { RegistryError } from "./errors.js";

/** Counts the requests being answered, of every face together, and refuses those beyond a limit. */
export class InFlight {
  readonly #limit: number;
  #count = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** A request begins. Throws RESOURCE_EXHAUSTED, and counts nothing, if it is one too many. */
  enter(): void {
    if (this.#count >= this.#limit) {
      throw new RegistryError(
        "RESOURCE_EXHAUSTED",
        `as many requests are being answered as this service takes at once (${this.#limit}, --max-requests-in-flight); try again later`,
      );
    }
    this.#count++;
  }

  /** A request that began was answered. */
  leave(): void {
    this.#count--;
  }
}
