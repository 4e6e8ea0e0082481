/** Numbers that a seed decides: the same seed, the same numbers. */
export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A whole number from 0, below `end`. */
  below(end: number): number {
    // Mulberry32, by Tommy Ettinger.
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * end);
  }

  /** True so many times in a hundred. */
  percent(share: number): boolean {
    return this.below(100) < share;
  }

  pick<T>(items: readonly T[]): T {
    if (items.length === 0) throw new Error("there is nothing to pick from");
    return items[this.below(items.length)] as T;
  }
}
