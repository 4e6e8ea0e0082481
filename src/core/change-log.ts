import type { RegistryChange, RegistryObserver } from "./region.js";

/** What became of a change: null if it was called off; `refusal` holds what an observer rejected it with. */
export interface Outcome {
  readonly change: RegistryChange | null;
  readonly refusal: { readonly error: unknown } | null;
}

type Refusal = Outcome["refusal"];

/** A change that waits for its turn. */
export interface PendingChange {
  /** The change, as of the moment its turn comes; null calls it off, and nobody is told. */
  describe(revision: bigint): RegistryChange | null;
  /** Makes it visible. Called once every observer was told and, if `revocable`, none of them refused. */
  apply(change: RegistryChange): void;
  readonly revocable: boolean;
}

/**
 * The one way by which anything in the registry changes: numbers a change, tells every observer in order, waits
 * for each, makes the change visible, and only then takes the next. Synchronous from end to end while nothing
 * is under way and no observer returns a promise.
 */
export class ChangeLog {
  readonly #observers: readonly RegistryObserver[];
  #revision: bigint;
  /** The last of the changes under way. */
  #tail: Promise<unknown> | undefined;
  #running = false;
  readonly #onNext = new Set<() => void>();

  /** The first change gets the number after `revision`. */
  constructor(observers: readonly RegistryObserver[], revision = 0n) {
    this.#observers = observers;
    this.#revision = revision;
  }

  /** The number of the last change. */
  get revision(): bigint {
    return this.#revision;
  }

  /** Resolves once the next change is visible. */
  next(): Promise<void> {
    return new Promise((resolve) => this.onNext(resolve));
  }

  /** Calls `run` once the next change is visible, unless the returned function was called before. */
  onNext(run: () => void): () => void {
    this.#onNext.add(run);
    return () => this.#onNext.delete(run);
  }

  /** Carries out a change in its turn; answers what became of it. */
  commit(pending: PendingChange): Outcome | Promise<Outcome> {
    // An observer that changes the registry from within its own turn waits like everyone else.
    if (this.#running || this.#tail !== undefined) {
      const run = () => this.#run(pending);
      return this.#enqueue((this.#tail ?? Promise.resolve()).then(run));
    }
    const result = this.#run(pending);
    return result instanceof Promise ? this.#enqueue(result) : result;
  }

  #enqueue(result: Promise<Outcome>): Promise<Outcome> {
    this.#tail = result;
    const clear = () => {
      if (this.#tail === result) this.#tail = undefined;
    };
    result.then(clear, clear);
    return result;
  }

  #run(pending: PendingChange): Outcome | Promise<Outcome> {
    const change = pending.describe(this.#revision + 1n);
    if (change === null) return { change, refusal: null };
    this.#running = true;
    const told = this.#tell(change, 0, null);
    this.#running = false;
    if (told instanceof Promise) return told.then((refusal) => this.#finish(pending, change, refusal));
    return this.#finish(pending, change, told);
  }

  /** Tells every observer from `index` on, whatever the others answer: a change refused is told as undone later. */
  #tell(change: RegistryChange, index: number, refusal: Refusal): Refusal | Promise<Refusal> {
    for (let i = index; i < this.#observers.length; i++) {
      try {
        const told = this.#observers[i]?.(change);
        if (told !== undefined) return this.#tellRest(change, i, told, refusal);
      } catch (error) {
        refusal ??= { error };
      }
    }
    return refusal;
  }

  async #tellRest(
    change: RegistryChange,
    index: number,
    told: Promise<void>,
    refusal: Refusal,
  ): Promise<Refusal> {
    try {
      await told;
    } catch (error) {
      refusal ??= { error };
    }
    return this.#tell(change, index + 1, refusal);
  }

  #finish(pending: PendingChange, change: RegistryChange, refusal: Refusal): Outcome {
    // A refused change was shown under this number all the same, so no other change may have it.
    this.#revision++;
    if (refusal === null || !pending.revocable) pending.apply(change);
    if (this.#onNext.size > 0) {
      const waiting = [...this.#onNext];
      this.#onNext.clear();
      for (const wake of waiting) wake();
    }
    return { change, refusal };
  }
}
