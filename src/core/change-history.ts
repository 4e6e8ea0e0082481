import { abortError, listenForAbort } from "./abort.js";
import { RegistryError } from "./errors.js";
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

/** Changes that are kept; of those before them it is only known that there were some. */
const defaultCapacity = 8192;

/**
 * The last changes, for whoever watches. Readers take them from here at their own pace, so that none costs more than
 * its place in the history, and one who is too slow is told so instead of being waited for.
 */
export class ChangeHistory {
  readonly #current: () => bigint;
  readonly #capacity: number;
  /** A ring: the change of revision r is at r modulo the capacity, unless nobody ever saw one of that number. */
  readonly #ring: (WatchedChange | undefined)[];
  #revision: bigint;
  #oldest: bigint;
  #wake: (() => void)[] = [];

  /** `revision` tells the number of the last change, whether or not anybody saw that. */
  constructor(revision: () => bigint, capacity = defaultCapacity) {
    this.#current = revision;
    this.#revision = revision();
    this.#oldest = this.#revision + 1n;
    this.#capacity = capacity;
    this.#ring = [];
  }

  record({ kind, reason, region, revision }: WatchedChange): void {
    // A change that was called off took a number, too.
    for (let skipped = this.#revision + 1n; skipped < revision; skipped++) this.#set(skipped, undefined);
    this.#set(revision, { kind, reason, region, revision });
    this.#revision = revision;
    const kept = revision - BigInt(this.#capacity) + 1n;
    if (kept > this.#oldest) this.#oldest = kept;
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
    signal: AbortSignal | undefined,
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
    const oldest = this.#oldest;
    yield { kind: "start", revision: current };
    if (next < oldest) {
      yield { kind: "gap", from: next, to: oldest - 1n };
      next = oldest;
    }
    for (;;) {
      if (signal?.aborted) throw abortError(signal);
      if (next < this.#oldest) throw fellBehind(next, this.#oldest);
      if (next > this.#revision) {
        await this.#next(signal);
        continue;
      }
      const change = this.#ring[this.#placeOf(next)];
      next++;
      if (change === undefined || !isVisible(change.region)) continue;
      if (name === undefined || change.region.name === name) yield { kind: "change", change };
    }
  }

  #set(revision: bigint, change: WatchedChange | undefined): void {
    this.#ring[this.#placeOf(revision)] = change;
  }

  #placeOf(revision: bigint): number {
    return Number(revision % BigInt(this.#capacity));
  }

  /** Resolves at the next change, or when `signal` is aborted. */
  #next(signal: AbortSignal | undefined): Promise<void> {
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
    `the watch fell behind: revision ${next} is no longer known, the oldest that is is ${oldest}; watch from there and list the regions anew`,
  );
}
