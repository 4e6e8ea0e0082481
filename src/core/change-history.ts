import { abortError, type CallSignal, listenForAbort } from "./abort.js";
import { RegistryError } from "./errors.js";
import { nextTurn } from "./event-loop.js";
import type { RegionStatus, RegistryChange } from "./region.js";

/** What is told of a change: not of the call that made it, which would be kept with it. */
export type WatchedChange = Pick<RegistryChange, "kind" | "reason" | "region" | "revision">;

/** What a watch tells: where it starts, changes that are no longer known, and each change after those. */
export type WatchEvent =
  | { readonly kind: "start"; readonly revision: bigint }
  | { readonly kind: "gap"; readonly from: bigint; readonly to: bigint }
  | { readonly kind: "change"; readonly change: WatchedChange };

export interface WatchOptions {
  /** The first revision wanted; changes from now on unless given. */
  readonly fromRevision?: bigint | undefined;
  /** Only changes of this region. */
  readonly name?: string | undefined;
}

/** Changes that one reader gets on end, before whatever else waits for the event loop has its turn. */
const changesATurn = 32;

/** Changes that are kept; of those before them it is only known that there were some. */
const defaultCapacity = 8192;

/**
 * The last changes, for whoever watches. Readers take them from here at their own pace, so that none costs more than
 * its place in the history, and one who is too slow is told so instead of being waited for.
 */
export class ChangeHistory {
  readonly #current: () => bigint;
  readonly #capacity: number;
  // Four rings and no objects: those would outlive each register by thousands, and cost as much as all the rest of it.
  readonly #kinds: WatchedChange["kind"][] = [];
  readonly #reasons: WatchedChange["reason"][] = [];
  readonly #regions: RegionStatus[] = [];
  readonly #revisions: bigint[] = [];
  /** How many changes there were; number n of them is, or was, at n modulo the capacity. */
  #count = 0;
  /** The last revision of which it is no longer known what it was. */
  #forgotten: bigint;
  #wake: (() => void)[] = [];

  /** `revision` tells the number of the last change, whether or not anybody saw that. */
  constructor(revision: () => bigint, capacity = defaultCapacity) {
    this.#current = revision;
    this.#forgotten = revision();
    this.#capacity = capacity;
  }

  record({ kind, reason, region, revision }: WatchedChange): void {
    const place = this.#count % this.#capacity;
    if (this.#count >= this.#capacity) this.#forgotten = this.#revisions[place] as bigint;
    this.#kinds[place] = kind;
    this.#reasons[place] = reason;
    this.#regions[place] = region;
    this.#revisions[place] = revision;
    this.#count++;
    if (this.#wake.length === 0) return;
    const waiting = this.#wake;
    this.#wake = [];
    for (const wake of waiting) wake();
  }

  /**
   * Every change from the wanted revision on that `isVisible` lets through, until `signal` is aborted, whose reason
   * it then throws. Throws OUT_OF_RANGE for a revision yet to come, RESOURCE_EXHAUSTED for a reader who fell behind.
   */
  async *watch(
    { fromRevision, name }: WatchOptions,
    isVisible: (region: RegionStatus) => boolean,
    signal: CallSignal | undefined,
  ): AsyncGenerator<WatchEvent, void> {
    const current = this.#current();
    // No change has the number 0.
    let next = fromRevision === undefined ? current + 1n : fromRevision || 1n;
    if (next > current + 1n) {
      throw new RegistryError(
        "OUT_OF_RANGE",
        `from_revision ${next} is yet to come: the revision is ${current}, perhaps since the service was restarted`,
      );
    }
    const forgotten = this.#forgotten;
    let index = this.#indexOf(next);
    yield { kind: "start", revision: current };
    if (next <= forgotten) {
      yield { kind: "gap", from: next, to: forgotten };
      next = forgotten + 1n;
    }
    let inTurn = 0;
    for (;;) {
      if (signal?.aborted) throw abortError(signal);
      if (index < this.#count - this.#capacity) throw fellBehind(next, this.#forgotten + 1n);
      if (index === this.#count) {
        await this.#next(signal);
        inTurn = 0;
        continue;
      }
      if (inTurn === changesATurn) {
        await nextTurn();
        inTurn = 0;
        continue;
      }
      inTurn++;
      const change = this.#at(index++);
      next = change.revision + 1n;
      if (!isVisible(change.region)) continue;
      if (name === undefined || change.region.name === name) yield { kind: "change", change };
    }
  }

  /** Where the changes from that revision on begin, of those that are known. */
  #indexOf(revision: bigint): number {
    const first = Math.max(0, this.#count - this.#capacity);
    let index = this.#count;
    while (index > first && this.#at(index - 1).revision >= revision) index--;
    return index;
  }

  #at(index: number): WatchedChange {
    const place = index % this.#capacity;
    return {
      kind: this.#kinds[place] as WatchedChange["kind"],
      reason: this.#reasons[place] as WatchedChange["reason"],
      region: this.#regions[place] as RegionStatus,
      revision: this.#revisions[place] as bigint,
    };
  }

  /** Resolves at the next change, or when `signal` is aborted. */
  #next(signal: CallSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        stopListening();
        resolve();
      };
      const stopListening = listenForAbort(signal, () => {
        this.#wake = this.#wake.filter((wake) => wake !== done);
        done();
      });
      this.#wake.push(done);
    });
  }
}

function fellBehind(next: bigint, oldest: bigint): RegistryError {
  return new RegistryError(
    "RESOURCE_EXHAUSTED",
    `the watch fell behind: revision ${next} is no longer known, the oldest one kept is ${oldest}; watch from there and list the regions anew`,
  );
}
