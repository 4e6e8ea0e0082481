import { abortError, type CallSignal, listenForAbort, untilDoneOrAborted } from "./abort.js";
import { RegistryError } from "./errors.js";
import { isSameExporter } from "./exporter.js";
import { isSameHandle } from "./handle.js";
import { isOwn, mayTouch } from "./policy.js";
import * as refusals from "./refusals.js";
import type { CallContext, RegionStatus, RegisterRequest } from "./region.js";
import type { OpenOptions, RegionLifecycle } from "./region-lifecycle.js";
import type { RegionRecords } from "./region-records.js";
import type { RegionTable } from "./region-table.js";
import type { RegionWatch } from "./region-watch.js";
import { leaseProblem, nameProblem, registerProblem } from "./register-checks.js";
import { type Origin, Registration } from "./registration.js";
import type { Sessions } from "./sessions.js";

/** How a lease is started anew. */
export interface RenewOptions {
  /** Milliseconds; as long as it was unless given. */
  readonly leaseMs?: number | undefined;
  /** The generation that is meant; whichever there is unless given. */
  readonly generation?: bigint | undefined;
}

export interface RegistrarParts {
  readonly records: RegionRecords;
  readonly table: RegionTable;
  readonly lifecycle: RegionLifecycle;
  readonly watch: RegionWatch;
  readonly sessions: Sessions;
  /** The number of the last registration before this registry's first. */
  readonly generation: bigint;
}

/** Lets regions in: one register at a time for each name. */
export class Registrar {
  readonly #records: RegionRecords;
  readonly #table: RegionTable;
  readonly #lifecycle: RegionLifecycle;
  readonly #watch: RegionWatch;
  readonly #sessions: Sessions;
  #generation: bigint;
  #isRefusing = false;

  constructor(parts: RegistrarParts) {
    this.#records = parts.records;
    this.#table = parts.table;
    this.#lifecycle = parts.lifecycle;
    this.#watch = parts.watch;
    this.#sessions = parts.sessions;
    this.#generation = parts.generation;
  }

  /** Refuses every register from now on. */
  refuse(): void {
    this.#isRefusing = true;
  }

  /** See the registry's `register`. */
  async register(request: RegisterRequest, context: CallContext): Promise<RegionStatus> {
    const startedAt = performance.now();
    const { name } = request;
    const badName = nameProblem(name);
    if (badName !== null) throw badName;
    // No await from the last look at the name to its reservation: two callers would both find it free.
    let holder = this.#table.get(name);
    let underWay = holder && this.#waitedFor(holder, request);
    while (underWay !== undefined) {
      await untilDoneOrAborted(underWay, context.signal);
      if (context.signal?.aborted) throw this.#abortError(context.signal);
      holder = this.#table.get(name);
      underWay = holder && this.#waitedFor(holder, request);
    }
    if (this.#isRefusing) throw refusals.exiting();
    if (holder !== undefined && request.replaces === undefined) {
      if (request.isIdempotent !== true || !isTheSame(holder, request, context)) {
        throw refusals.alreadyInManager(name);
      }
      const problem = registerProblem(request);
      if (problem !== null) throw problem;
      if (request.isDryRun === true) return holder.status;
      const { leaseMs } = request;
      return leaseMs === undefined ? this.#startLease(holder) : this.renew(holder, { leaseMs });
    }
    const problem = registerProblem(request);
    if (problem !== null) throw problem;
    // Asked for no sooner: a face makes a signal for the calls that need one.
    const { signal } = context;
    if (signal?.aborted) throw this.#abortError(signal);
    if (context.session && !this.#sessions.isOpen(context.session)) throw refusals.sessionEnded(name);
    if (request.replaces !== undefined) assertReplaceable(holder, name, request.replaces, context);
    const origin: Origin = { context, startedAt, reason: holder === undefined ? "requested" : "replaced" };
    // A number that a dry run had might come again after a restart, so it gets none.
    const generation = request.isDryRun === true ? 0n : ++this.#generation;
    const registration = new Registration(request, generation, origin);
    return await this.#open(registration, request, origin, { replaced: holder });
  }

  /** Takes up a region of an earlier process once `begin` resolves. */
  async adopt(
    registration: Registration,
    request: RegisterRequest,
    origin: Origin,
    begin: Promise<void>,
  ): Promise<void> {
    if (this.#isRefusing) throw refusals.exiting();
    if (this.#table.get(registration.name) !== undefined) throw refusals.alreadyInManager(registration.name);
    await this.#open(registration, request, origin, { isAdopted: true, begin });
  }

  /** Reserves the name and opens the handle. */
  #open(
    registration: Registration,
    request: RegisterRequest,
    origin: Origin,
    options: OpenOptions,
  ): Promise<RegionStatus> {
    const { replaced } = options;
    this.#table.reserve(registration, replaced);
    return new Promise((resolve, reject) => {
      registration.onAbandon = reject;
      const stopListening = listenForAbort(origin.context.signal, (aborted) => {
        registration.abandon(this.#abortError(aborted));
      });
      const end = () => {
        stopListening();
        registration.forgetCaller();
        if (replaced !== undefined) replaced.replacing = undefined;
      };
      registration.settled = this.#lifecycle.open(registration, request, origin, options).then(
        (region) => {
          end();
          resolve(region);
        },
        (error) => {
          end();
          reject(error);
        },
      );
      if (replaced !== undefined) replaced.replacing = registration.settled;
    });
  }

  /** See the registry's `renew`. */
  async renew(
    registration: Registration,
    { leaseMs = registration.leaseMs ?? undefined, generation }: RenewOptions,
  ): Promise<RegionStatus> {
    const { name } = registration;
    if (generation !== undefined && registration.generation !== generation) {
      throw refusals.otherGeneration(name, generation, registration.generation);
    }
    if (leaseMs === undefined) throw refusals.noLease(name);
    const problem = leaseProblem(leaseMs);
    if (problem !== null) throw new RegistryError("INVALID_ARGUMENT", problem);
    this.#assertStays(registration);
    if (registration.leaseMs !== leaseMs && registration.isJournaled) {
      await this.#records.enter(registration, undefined, leaseMs);
    }
    registration.leaseMs = leaseMs;
    this.#assertStays(registration);
    return this.#startLease(registration);
  }

  #startLease(registration: Registration): RegionStatus {
    this.#watch.startLease(registration);
    return registration.status;
  }

  /** What to wait for, since the name may be free then, or what is asked for may be there. */
  #waitedFor(holder: Registration, { isIdempotent }: RegisterRequest): Promise<void> | undefined {
    if (this.#isRefusing) return undefined;
    if (holder.isRollingBack) return holder.settled;
    if (isIdempotent !== true) return undefined;
    return holder.state === "registering" ? holder.settled : holder.replacing;
  }

  /** Throws FAILED_PRECONDITION if the region is on its way out. */
  #assertStays({ name, state, leaving, refusesPins, session }: Registration): void {
    const stays =
      (state === "ready" || state === "orphaned") &&
      leaving === undefined &&
      !refusesPins &&
      (session === null || this.#sessions.isOpen(session));
    if (!stays) throw refusals.leaving(name);
  }

  #abortError(signal: CallSignal): RegistryError {
    return this.#isRefusing ? refusals.exiting() : abortError(signal);
  }
}

/** Whether the request is for the very region that there is, by the one who has it. */
function isTheSame(holder: Registration, request: RegisterRequest, context: CallContext): boolean {
  const { deviceId, deviceUuid, offset = 0n } = request;
  return (
    holder.state === "ready" &&
    holder.leaving === undefined &&
    isOwn(context, holder) &&
    // A token's name can have several sessions, and none is to be told yes of what goes with another.
    holder.session === (context.session ?? null) &&
    isSameHandle(holder.handle, request.handle) &&
    holder.byteSize === request.byteSize &&
    holder.offset === offset &&
    (request.exporter === undefined || isSameExporter(request.exporter, holder.exporter)) &&
    (deviceId === undefined || BigInt(holder.deviceId) === deviceId) &&
    (deviceUuid === undefined || holder.deviceUuid === deviceUuid)
  );
}

/** Throws unless the caller may put another region in the place of this one. */
function assertReplaceable(
  holder: Registration | undefined,
  name: string,
  generation: bigint,
  context: CallContext,
): asserts holder is Registration {
  if (holder === undefined) throw refusals.notReplaceable(name, "there is none");
  if (!mayTouch(context, holder)) throw refusals.notOwner(name);
  if (holder.generation !== generation) throw refusals.otherGeneration(name, generation, holder.generation);
  if (holder.replacing !== undefined) throw refusals.notReplaceable(name, "it is being replaced");
  if (holder.leaving !== undefined) throw refusals.notReplaceable(name, "it is being unregistered");
  if (holder.state !== "ready" && holder.state !== "orphaned") {
    throw refusals.notReplaceable(name, `it is ${holder.state}`);
  }
}
