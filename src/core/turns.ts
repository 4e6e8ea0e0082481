/** Lets so many at a time go on; the others wait for their turns, in the order in which they came. */
export class Turns {
  readonly #waiting = new Map<Promise<void>, () => void>();
  /** In order, with those who no longer wait: a map that is emptied from its front takes ever longer. */
  #queue: Promise<void>[] = [];
  #front = 0;
  #free: number;

  constructor(limit: number) {
    this.#free = limit;
  }

  /** Resolves when it is its turn. To be given back in any case. */
  take(): Promise<void> {
    if (this.#free > 0) {
      this.#free--;
      return Promise.resolve();
    }
    let go: () => void = () => {};
    const turn = new Promise<void>((resolve) => {
      go = resolve;
    });
    this.#waiting.set(turn, go);
    this.#queue.push(turn);
    return turn;
  }

  /** The turn is over, or no longer waited for. */
  giveBack(turn: Promise<void>): void {
    if (this.#waiting.delete(turn)) return;
    while (this.#front < this.#queue.length) {
      const next = this.#queue[this.#front++] as Promise<void>;
      const go = this.#waiting.get(next);
      if (go === undefined) continue;
      this.#waiting.delete(next);
      go();
      return;
    }
    this.#queue = [];
    this.#front = 0;
    this.#free++;
  }
}
