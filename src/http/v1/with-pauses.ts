import type { Clock } from "../../core/clock.js";

/** What is given instead of an item while there is none. */
export const pause = Symbol("pause");

type Outcome<T> = { readonly result: IteratorResult<T> } | { readonly error: unknown };

/**
 * The items of `source`, and a pause whenever there was none for `pauseMs` milliseconds. An item is asked for when
 * the one before was dealt with. Ended early, it does not wait for `source`, which may be waiting itself.
 */
export async function* withPauses<T>(
  source: AsyncIterator<T>,
  pauseMs: number,
  clock: Clock,
): AsyncGenerator<T | typeof pause, void> {
  let wake = () => {};
  // The promise is waited for once, however many pauses there are: it would keep every wait until it is settled.
  const ask = (): (() => Outcome<T> | undefined) => {
    let outcome: Outcome<T> | undefined;
    const settle = (found: Outcome<T>) => {
      outcome = found;
      wake();
    };
    source.next().then(
      (result) => settle({ result }),
      (error: unknown) => settle({ error }),
    );
    return () => outcome;
  };
  const untilSettledOrPause = () =>
    new Promise<void>((resolve) => {
      const cancel = clock.after(pauseMs, resolve);
      wake = () => {
        cancel();
        resolve();
      };
    });
  try {
    let outcomeOf = ask();
    for (;;) {
      if (outcomeOf() === undefined) await untilSettledOrPause();
      const outcome = outcomeOf();
      if (outcome === undefined) {
        yield pause;
        continue;
      }
      if ("error" in outcome) throw outcome.error;
      if (outcome.result.done === true) return;
      yield outcome.result.value;
      outcomeOf = ask();
    }
  } finally {
    void source.return?.();
  }
}
