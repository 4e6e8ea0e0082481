import type { ErrorCode, RegistryError } from "./errors.js";
import { roomForAnother } from "./event-loop.js";
import type { RegionRecord } from "./journal.js";
import type { RegisterRequest } from "./region.js";
import type { RegionRecords } from "./region-records.js";
import type { Registrar } from "./registrar.js";
import { type Origin, Registration } from "./registration.js";
import type { Sessions } from "./sessions.js";
import { Turns } from "./turns.js";

/** Why a region was not taken up again, and what becomes of it. */
interface Refusal {
  readonly reason: string;
  /** Whether it is written down that it is gone, at the latest as soon as that is possible; else the next start tries. */
  readonly isForgotten: boolean;
}

/** A region of an earlier process that was not taken up again. */
export interface RefusedAdoption extends Refusal {
  readonly name: string;
  readonly generation: bigint;
  readonly owner: string;
  /** The id of the session that it lived as long as. */
  readonly session: string | null;
}

/** How far a registry is with the regions of an earlier process. */
export interface AdoptionProgress {
  /** Regions of which it is not known yet. */
  readonly pending: number;
  readonly adopted: number;
  readonly refused: readonly RefusedAdoption[];
}

export interface AdoptionOptions {
  /** Resolves once the driver can be asked. */
  readonly whenUsable: Promise<void>;
  /** Whether to take up regions of which nobody knows whether their exporters live. */
  readonly allowsUnverified: boolean;
}

export interface AdoptionParts {
  readonly registrar: Registrar;
  readonly records: RegionRecords;
  readonly sessions: Sessions;
}

/** Regions that are opened at the same time: a device's queue has an end. */
const concurrency = 64;

// The handle is dead, its exporter is, or its session, or a later region has its name; anything else may be
// otherwise at the next start.
const finalRefusals: ReadonlySet<ErrorCode> = new Set([
  "ALREADY_EXISTS",
  "INVALID_ARGUMENT",
  "FAILED_PRECONDITION",
  "UNAUTHENTICATED",
]);

/** The results of CUDA that speak of the handle. Memory, for one, is perhaps there at the next start. */
const deadHandleResults: ReadonlySet<number> = new Set([1, 400]);

/** As many refusals as are told one by one. */
const maxRefusals = 1000;

const sessionOver = "its session ended with the service";
const unverified =
  "its exporter was not named, so nobody can tell whether it lives; --adopt-unverified takes such regions up";

/** Takes up the regions of an earlier process. */
export class Adoption implements AdoptionProgress {
  readonly #registrar: Registrar;
  readonly #records: RegionRecords;
  readonly #sessions: Sessions;
  readonly #refused: RefusedAdoption[] = [];
  readonly #turns = new Turns(concurrency);
  #pending = 0;
  #adopted = 0;

  constructor({ registrar, records, sessions }: AdoptionParts) {
    this.#registrar = registrar;
    this.#records = records;
    this.#sessions = sessions;
  }

  get pending(): number {
    return this.#pending;
  }

  get adopted(): number {
    return this.#adopted;
  }

  get refused(): readonly RefusedAdoption[] {
    return this.#refused;
  }

  /** See the registry's `adopt`. */
  async adopt(record: RegionRecord, options: AdoptionOptions): Promise<RefusedAdoption | null> {
    const { name, generation, owner, session } = record;
    this.#pending++;
    try {
      const registration = registrationOf(record);
      const reason = this.#refusal(record, options);
      if (reason !== null) await this.#records.leaveEventually(registration);
      const why =
        reason === null ? await this.#open(registration, record, options) : { reason, isForgotten: true };
      if (why === null) {
        this.#adopted++;
        return null;
      }
      const refusal = { ...why, name, generation, owner, session: session?.id ?? null };
      if (this.#refused.length < maxRefusals) this.#refused.push(refusal);
      return refusal;
    } finally {
      this.#pending--;
    }
  }

  /** Why it cannot be taken up whatever the driver says; null if it perhaps can. */
  #refusal(record: RegionRecord, { allowsUnverified }: AdoptionOptions): string | null {
    const { session, exporter } = record;
    if (session !== null) this.#sessions.restore(session);
    if (session !== null && !this.#sessions.isOpen(session.id)) return sessionOver;
    return exporter === null && !allowsUnverified ? unverified : null;
  }

  /** Opens it again; answers why that failed, or null. The name is taken from the call on. */
  async #open(
    registration: Registration,
    record: RegionRecord,
    { whenUsable }: AdoptionOptions,
  ): Promise<Refusal | null> {
    const turn = this.#turns.take();
    const begin = Promise.race([this.#mayBegin(turn, whenUsable), registration.whenAbandoned()]);
    const opened = this.#registrar.adopt(registration, requestOf(record), originOf(record), begin);
    const { settled } = registration;
    const outcome = opened.then(
      () => null,
      async (error: RegistryError) => {
        const isForgotten = registration.isUnwanted || isFinal(error);
        // Of what nobody wants any more that was written down before its name was free.
        if (registration.isUnwanted) await settled;
        else if (isForgotten) await this.#records.leaveEventually(registration);
        return { reason: error.message, isForgotten };
      },
    );
    void outcome.finally(() => this.#turns.giveBack(turn));
    // Whoever unregisters it meanwhile waits for the journal, too.
    registration.settled = Promise.all([settled, outcome]).then(() => {});
    return outcome;
  }

  async #mayBegin(turn: Promise<void>, whenUsable: Promise<void>): Promise<void> {
    await turn;
    // Not before: a promise that 100,000 wait for at once holds the event loop when it resolves.
    await whenUsable;
    await roomForAnother();
  }
}

function isFinal({ code, driver }: RegistryError): boolean {
  return finalRefusals.has(code) && (driver === undefined || deadHandleResults.has(driver.cudaCode));
}

function registrationOf(record: RegionRecord): Registration {
  const registration = new Registration(requestOf(record), record.generation, originOf(record));
  registration.registeredAt = record.registeredAt;
  registration.isJournaled = true;
  registration.isVerified = record.exporter !== null;
  return registration;
}

function originOf({ owner, session, protocol }: RegionRecord): Origin {
  const context = { owner, session: session?.id ?? null, protocol, requestId: "adopted" };
  return { context, startedAt: performance.now(), reason: "adopted" };
}

function requestOf(record: RegionRecord): RegisterRequest {
  return {
    name: record.name,
    handle: record.handle,
    deviceUuid: record.deviceUuid,
    byteSize: record.byteSize,
    offset: record.offset,
    leaseMs: record.leaseMs ?? undefined,
    exporter: record.exporter ?? undefined,
    labels: record.labels,
  };
}
