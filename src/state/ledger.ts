import type { RegionRecord } from "../core/journal.js";
import type { Counters, Entry } from "./entry.js";

/** What the entries up to now come to. */
export class Ledger {
  readonly #records = new Map<bigint, RegionRecord>();
  #counters: Counters = { epoch: 0n, generation: 0n, revision: 0n };

  get counters(): Counters {
    return this.#counters;
  }

  /** How many regions there are. */
  get size(): number {
    return this.#records.size;
  }

  /** What is left of a region that is not there is nothing, so that is no fault. */
  apply(entry: Entry): void {
    if (entry.kind === "counters") this.#raise(entry.counters);
    else if (entry.kind === "left") this.#records.delete(entry.generation);
    else {
      if (entry.replaces !== null) this.#records.delete(entry.replaces);
      this.#records.set(entry.record.generation, entry.record);
      this.noteGeneration(entry.record.generation);
    }
  }

  /** No region that comes later has this generation, whether or not this one comes to be. */
  noteGeneration(generation: bigint): void {
    this.#raise({ epoch: 0n, generation, revision: 0n });
  }

  /** The regions in the order of their generations. */
  records(): RegionRecord[] {
    return [...this.#records.values()].sort((a, b) => (a.generation < b.generation ? -1 : 1));
  }

  /** The fewest entries that come to the same: every region, and then the counters. */
  *entries(): Generator<Entry> {
    for (const record of this.#records.values()) yield { kind: "registered", record, replaces: null };
    yield { kind: "counters", counters: this.#counters };
  }

  #raise({ epoch, generation, revision }: Counters): void {
    const now = this.#counters;
    this.#counters = {
      epoch: max(now.epoch, epoch),
      generation: max(now.generation, generation),
      revision: max(now.revision, revision),
    };
  }
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
