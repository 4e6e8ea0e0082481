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

  /** Writes a region down, in the place of `replaced`. Rejects with UNAVAILABLE. */
  async enter(registration: Registration, now: number, replaced?: Registration): Promise<void> {
    registration.registeredAt ??= now;
    try {
      await this.#journal?.registered(this.#recordOf(registration), replaced?.generation);
    } catch (cause) {
      throw refusals.notJournaled(registration.name, cause);
    }
    registration.isJournaled = true;
    if (replaced !== undefined) replaced.isJournaled = false;
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
    await this.leave(registration).catch(() => {
      this.#clock.after(journalRetryMs, () => void this.leaveEventually(registration));
    });
  }

  #recordOf(registration: Registration): RegionRecord {
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
      leaseMs: registration.leaseMs,
      exporter: registration.exporter,
      labels: registration.labels,
    };
  }
}
