/** Lets so many at a time go on; the others wait for their turns, in the order in which they came. */
export class Turns {
  readonly #waiting = new Map<Promise<void>, () => void>();
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
    return turn;
  }

  /** The turn is over, or no longer waited for. */
  giveBack(turn: Promise<void>): void {
    if (this.#waiting.delete(turn)) return;
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free++;
      return;
    }
    const [promise, go] = next;
    this.#waiting.delete(promise);
    go();
  }
}
