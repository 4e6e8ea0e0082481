import { RegistryError } from "../../src/core/errors.js";
import type { RegionJournal, RegionRecord } from "../../src/core/journal.js";

/** A journal in memory: takes down one thing after the other, in the order in which it was asked. */
export class FakeJournal implements RegionJournal {
  /** What would be there after a restart. */
  readonly records = new Map<bigint, RegionRecord>();
  /** What was taken down, in words. */
  readonly entries: string[] = [];
  /** Whether everything is refused. */
  isFull = false;
  /** What it returns is awaited before each write, what it throws is the write's refusal. */
  beforeWrite: (() => Promise<void> | void) | undefined;
  #tail: Promise<void> = Promise.resolve();

  registered(record: RegionRecord, replaces?: bigint): Promise<void> {
    return this.#write(`registered ${record.name}`, () => {
      if (replaces !== undefined) this.records.delete(replaces);
      this.records.set(record.generation, record);
    });
  }

  left(generation: bigint): Promise<void> {
    return this.#write(`left ${this.records.get(generation)?.name}`, () => this.records.delete(generation));
  }

  /** Names of the regions that would be there after a restart, sorted. */
  names(): string[] {
    return [...this.records.values()].map(({ name }) => name).sort();
  }

  #write(entry: string, apply: () => void): Promise<void> {
    const written = this.#tail.then(async () => {
      await this.beforeWrite?.();
      if (this.isFull) throw new RegistryError("UNAVAILABLE", "the state file cannot be written");
      apply();
      this.entries.push(entry);
    });
    this.#tail = written.catch(() => {});
    return written;
  }
}
