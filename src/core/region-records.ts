import type { Clock } from "./clock.js";
import type { RegionJournal, RegionRecord, SessionRecord } from "./journal.js";
import * as refusals from "./refusals.js";
import type { Registration } from "./registration.js";

/** How long the registry waits with what the journal would not take before it asks again, in milliseconds. */
export const journalRetryMs = 5000;

/** What is written down of regions, if anything is. */
export class RegionRecords {
  readonly #journal: RegionJournal | undefined;
  readonly #clock: Clock;
  readonly #sessionRecord: (id: string) => SessionRecord | null;
  /** What went, and is written down all the same; and what cancels the next try to have that changed. */
  readonly #stale = new Map<Registration, () => void>();
  #isStopped = false;

  constructor(
    journal: RegionJournal | undefined,
    clock: Clock,
    sessionRecord: (id: string) => SessionRecord | null,
  ) {
    this.#journal = journal;
    this.#clock = clock;
    this.#sessionRecord = sessionRecord;
  }

  /** Whether there is nothing to wait for. */
  get isOff(): boolean {
    return this.#journal === undefined;
  }

  /** Writes a region down, in the place of `replaced`, with a lease of `leaseMs`. Rejects with UNAVAILABLE. */
  async enter(
    registration: Registration,
    replaced?: Registration,
    leaseMs: number | null = registration.leaseMs,
  ): Promise<void> {
    registration.registeredAt ??= this.#clock.now();
    // A restart would otherwise find two of that name.
    const outdated = replaced ?? this.#staleOf(registration.name);
    try {
      await this.#journal?.registered(this.#recordOf(registration, leaseMs), outdated?.generation);
    } catch (cause) {
      const { name, state } = registration;
      throw state === "registering"
        ? refusals.registerNotJournaled(name, cause)
        : refusals.notJournaled(name, cause);
    }
    registration.isJournaled = true;
    if (outdated !== undefined) outdated.isJournaled = false;
  }

  /** Writes down that it goes. Rejects with UNAVAILABLE, and then it has to stay. */
  async leave(registration: Registration): Promise<void> {
    if (!registration.isJournaled) return;
    try {
      await this.#journal?.left(registration.generation);
    } catch (cause) {
      throw refusals.notJournaled(registration.name, cause);
    }
    registration.isJournaled = false;
  }

  /** Writes down that it goes, now or as soon as that is possible: it goes in any case. */
  async leaveEventually(registration: Registration): Promise<void> {
    try {
      await this.leave(registration);
    } catch {
      if (this.#isStopped) return;
      const cancel = this.#clock.after(journalRetryMs, () => {
        this.#stale.delete(registration);
        void this.leaveEventually(registration);
      });
      this.#stale.set(registration, cancel);
    }
  }

  /** What could not be written down by now stays so. */
  stop(): void {
    this.#isStopped = true;
    for (const cancel of this.#stale.values()) cancel();
    this.#stale.clear();
  }

  #staleOf(name: string): Registration | undefined {
    for (const stale of this.#stale.keys()) if (stale.name === name) return stale;
    return undefined;
  }

  #recordOf(registration: Registration, leaseMs: number | null): RegionRecord {
    const { session } = registration;
    return {
      generation: registration.generation,
      name: registration.name,
      handle: registration.handle,
      deviceId: registration.deviceId,
      deviceUuid: registration.deviceUuid,
      byteSize: registration.byteSize,
      offset: registration.offset,
      owner: registration.owner,
      session: session === null ? null : this.#sessionRecord(session),
      protocol: registration.protocol,
      registeredAt: registration.registeredAt ?? 0,
      leaseMs,
      exporter: registration.exporter,
      labels: registration.labels,
    };
  }
}
