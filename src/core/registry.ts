import { Adoption, type AdoptionOptions, type AdoptionProgress, type RefusedAdoption } from "./adoption.js";
import type { RegistryLimits } from "./capacity.js";
import { ChangeHistory, type WatchEvent, type WatchOptions } from "./change-history.js";
import { type Clock, systemClock } from "./clock.js";
import { Departures, type ReleaseOptions, type ReleaseOutcome } from "./departures.js";
import type { DeviceUsage } from "./device-usage.js";
import type { CudaDriver } from "./driver.js";
import { inSlices } from "./event-loop.js";
import type { ExporterWatch } from "./exporter.js";
import type { RegionJournal, RegionRecord } from "./journal.js";
import { MappingPool } from "./mapping-pool.js";
import { assertWithin, Pin } from "./pin.js";
import { mayTouch, openPolicy, type RegistryPolicy } from "./policy.js";
import * as refusals from "./refusals.js";
import {
  anonymous,
  type CallContext,
  type ChangeReason,
  type ListedRegion,
  type RegionPin,
  type RegionStatus,
  type RegionWindow,
  type RegisterRequest,
  type RegistryChange,
  type RegistryObserver,
} from "./region.js";
import { RegionLifecycle } from "./region-lifecycle.js";
import type { Block } from "./region-list.js";
import { quoteRegionName } from "./region-name.js";
import type { RegionPage, RegionQuery } from "./region-query.js";
import { RegionRecords } from "./region-records.js";
import { RegionTable } from "./region-table.js";
import { RegionViews } from "./region-views.js";
import { RegionWatch } from "./region-watch.js";
import { Registrar, type RenewOptions } from "./registrar.js";
import type { Origin, Registration } from "./registration.js";
import { type SessionInfo, Sessions } from "./sessions.js";

export interface RegistryOptions {
  readonly driver: CudaDriver;
  readonly observers?: readonly RegistryObserver[];
  /** Registers beyond them are RESOURCE_EXHAUSTED. */
  readonly limits?: RegistryLimits;
  /** Triton's way unless given. */
  readonly policy?: RegistryPolicy;
  /** Without it a register that names its exporter is UNIMPLEMENTED. */
  readonly exporters?: ExporterWatch;
  /** How long a region outlives its exporter, in milliseconds; 30 s unless given. */
  readonly orphanGraceMs?: number;
  /** Where regions are written down, so that they outlive this registry. */
  readonly journal?: RegionJournal;
  /** The number of the last registration, and of the last change, before this registry's first. */
  readonly generation?: bigint;
  readonly revision?: bigint;
  /** For tests. */
  readonly clock?: Clock;
  /** Told what an observer rejects a change with that cannot be undone. Without it: a process warning. */
  readonly onObserverError?: (error: unknown, change: RegistryChange) => void;
}

/**
 * The one owner of native handles: opens them, keeps them mapped, lists them, closes them. One operation at a
 * time per name, and none waits for another name's. Observers must not wait for a call of the registry.
 */
export class RegionRegistry implements AsyncDisposable {
  readonly policy: RegistryPolicy;
  readonly sessions: Sessions;
  readonly #driver: CudaDriver;
  readonly #pool: MappingPool;
  readonly #table: RegionTable;
  readonly #records: RegionRecords;
  readonly #watch: RegionWatch;
  readonly #lifecycle: RegionLifecycle;
  readonly #registrar: Registrar;
  readonly #departures: Departures;
  readonly #views: RegionViews;
  readonly #adoption: Adoption;
  #closed: Promise<void> | undefined;

  constructor(options: RegistryOptions) {
    const { driver, limits = {}, clock = systemClock } = options;
    this.policy = options.policy ?? openPolicy;
    this.#driver = driver;
    this.#pool = new MappingPool(driver, limits.maxDeviceBytes);
    const revision = options.revision ?? 0n;
    this.#table = new RegionTable({
      observers: options.observers ?? [],
      limits,
      clock,
      revision,
      onVisible: (change) => history.record(change),
      onReady: (registration) => this.#watch.becameReady(registration),
      onObserverError: options.onObserverError ?? warn,
    });
    const history = new ChangeHistory(() => this.#table.revision);
    this.sessions = new Sessions({ clock, onEnd: (session) => this.#endSession(session) });
    this.#records = new RegionRecords(options.journal, clock, (id) => this.sessions.record(id));
    this.#watch = new RegionWatch({
      clock,
      exporters: options.exporters,
      orphanGraceMs: options.orphanGraceMs ?? 30_000,
      orphan: (registration) =>
        void this.#table.commit(registration, "orphaned", byItself("exporter_exited")),
      unregister: (registration, reason) => this.#lifecycle.unregister(registration, byItself(reason)),
    });
    const [table, records, watch] = [this.#table, this.#records, this.#watch];
    this.#lifecycle = new RegionLifecycle({ driver, clock, pool: this.#pool, table, records, watch });
    const lifecycle = this.#lifecycle;
    this.#registrar = new Registrar({
      table,
      lifecycle,
      watch,
      records,
      sessions: this.sessions,
      generation: options.generation ?? 0n,
    });
    this.#adoption = new Adoption({ registrar: this.#registrar, records, sessions: this.sessions });
    this.#departures = new Departures({ clock, policy: this.policy, table, lifecycle });
    this.#views = new RegionViews({ clock, policy: this.policy, table, history });
  }

  /**
   * Takes up a region of an earlier process: its name is taken from the call on. Answers null, or why that cannot be.
   * It is then no longer written down, unless the driver may say otherwise at the next start.
   */
  adopt(record: RegionRecord, options: AdoptionOptions): Promise<RefusedAdoption | null> {
    return this.#adoption.adopt(record, options);
  }

  /** Grows by one with every visible change; equal revisions have equal statuses, but for pins, uses and leases. */
  get revision(): bigint {
    return this.#table.revision;
  }

  /** Mappings the driver opened and has not got back: fewer than regions where these share a handle. */
  get mappings(): number {
    return this.#pool.open;
  }

  /** How far it is with the regions of an earlier process. */
  get adoption(): AdoptionProgress {
    return this.#adoption;
  }

  /**
   * Opens the handle and shows the region. Rejects with INVALID_ARGUMENT, ALREADY_EXISTS, FAILED_PRECONDITION,
   * PERMISSION_DENIED, UNAVAILABLE, RESOURCE_EXHAUSTED or INTERNAL, and with CANCELLED or DEADLINE_EXCEEDED as soon
   * as the context's signal is aborted: what the driver was doing by then is undone once it is done.
   */
  register(request: RegisterRequest, context: CallContext): Promise<RegionStatus> {
    return this.#registrar.register(request, context);
  }

  /**
   * Starts the lease of a region anew. Rejects with NOT_FOUND, PERMISSION_DENIED, INVALID_ARGUMENT, or
   * FAILED_PRECONDITION if it has no lease or is on its way out.
   */
  async renew(name: string, options: RenewOptions, context: CallContext): Promise<RegionStatus> {
    const registration = this.#views.find(name, undefined);
    if (!mayTouch(context, registration)) throw refusals.notOwner(name);
    return this.#registrar.renew(registration, options);
  }

  /**
   * Closes the region, or, while it is pinned, has that done when its last pin is released. Waits for a
   * register of that name under way; does nothing if there is no such region. Carried out whether or not the
   * caller stays. Rejects with INTERNAL if the driver refuses the close: the name stays taken, call it again.
   */
  unregister(name: string, context: CallContext): Promise<void> {
    return this.#departures.unregister(name, context);
  }

  /**
   * Unregisters a region for a caller who wants to know when its memory can be freed: nobody may pin it from now
   * on. Rejects with NOT_FOUND, PERMISSION_DENIED, FAILED_PRECONDITION, DEADLINE_EXCEEDED or INTERNAL.
   */
  release(name: string, options: ReleaseOptions, context: CallContext): Promise<ReleaseOutcome> {
    return this.#departures.release(name, options, context);
  }

  /**
   * Unregisters the regions there are at the time of the call, as far as the policy has it. Goes on past failures,
   * then rejects with INTERNAL; with PERMISSION_DENIED if nobody may.
   */
  unregisterAll(context: CallContext): Promise<void> {
    return this.#departures.unregisterAll(context);
  }

  /** Every region, or every one that the caller may see, sorted by the bytes of its name. */
  statuses(context?: CallContext): readonly RegionStatus[] {
    return this.#views.statuses(context);
  }

  /**
   * Every region, sorted by the bytes of its name, for who looks at all of them: blocks that stay the same until a
   * region of theirs comes or goes, in an array that does until any does.
   */
  blocks(): readonly Block<ListedRegion>[] {
    return this.#table.blocks();
  }

  /** One region. Throws NOT_FOUND, also for one that the caller may not see. */
  status(name: string, context?: CallContext): RegionStatus {
    return this.#views.find(name, context).status;
  }

  /** A page of the regions that match. Rejects with INVALID_ARGUMENT. */
  list(query: RegionQuery, context: CallContext): Promise<RegionPage> {
    return this.#views.list(query, context);
  }

  /** The region of that name as soon as it is ready. Rejects with DEADLINE_EXCEEDED after `waitMs` milliseconds. */
  waitFor(name: string, waitMs: number, context: CallContext): Promise<RegionStatus> {
    return this.#views.waitFor(name, waitMs, context);
  }

  /**
   * Every change that the caller may see, until the context's signal is aborted. Throws OUT_OF_RANGE for a revision
   * yet to come, RESOURCE_EXHAUSTED for a reader who fell behind.
   */
  watch(options: WatchOptions, context: CallContext): AsyncIterable<WatchEvent> {
    return this.#views.watch(options, context);
  }

  /** The devices, and what of each is held here. Rejects with UNAVAILABLE. */
  async devices(): Promise<readonly DeviceUsage[]> {
    const devices = await this.#driver.devices().catch((error: unknown) => {
      throw refusals.devicesFailed(error);
    });
    const regions = await this.#regionsByDevice();
    return Promise.all(
      devices.map(async (device) => ({
        ...device,
        freeBytes: (await this.#driver.freeBytes?.(device.ordinal).catch(() => null)) ?? null,
        mappedBytes: this.#pool.mappedBytes(device.ordinal),
        regions: regions.get(device.ordinal) ?? 0,
      })),
    );
  }

  /**
   * Holds a region (or a window of it) open. Throws NOT_FOUND, OUT_OF_RANGE, FAILED_PRECONDITION, or
   * PERMISSION_DENIED for a region of another.
   */
  pin(name: string, window: RegionWindow | null, context: CallContext): RegionPin {
    const registration = this.#views.find(name, undefined);
    if (!mayTouch(context, registration)) throw refusals.notOwner(name);
    if (registration.closing || registration.mapping === undefined) throw refusals.noSuchRegion(name);
    if (registration.state === "close_failed") throw refusals.unusable(name);
    if (registration.refusesPins) throw refusals.leaving(name);
    const { byteSize } = registration;
    const pinned = window ?? { offset: 0n, byteSize };
    assertWithin(pinned, byteSize, `shared memory region ${quoteRegionName(name)}`);
    const pin = new Pin(registration.status, registration.mapping.mapping, pinned, (released) => {
      this.#table.removePin(registration, released);
      this.#lifecycle.closeIfDrained(registration);
    });
    this.#table.addPin(registration, pin);
    return pin;
  }

  /** Refuses registers from now on; everything else is still answered. */
  refuseRegisters(): void {
    this.#registrar.refuse();
    // Their streams end with the faces, and that is not to end what the next process may take up again.
    this.sessions.closeAll();
  }

  /**
   * Undoes the registers under way, waits for every pin to be released, and resolves when the driver has all
   * mappings back. Rejects with INTERNAL if it refused one. The second call waits for the first.
   */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #regionsByDevice(): Promise<Map<number, number>> {
    const counts = new Map<number, number>();
    await inSlices(this.#table.blocks(), ({ regions }) => {
      for (const { deviceId } of regions) counts.set(deviceId, (counts.get(deviceId) ?? 0) + 1);
      return true;
    });
    return counts;
  }

  async #endSession({ id }: SessionInfo): Promise<void> {
    const members = this.#table.ofSession(id);
    for (const registration of members) {
      if (isPending(registration)) registration.abandon(refusals.sessionEnded(registration.name));
    }
    await this.#departures.each(members, byItself("session_ended"));
    for (const registration of members) this.#watch.endLater(registration, "session_ended");
  }

  async #close(): Promise<void> {
    this.refuseRegisters();
    const registrations = this.#table.all();
    for (const registration of registrations) {
      if (isPending(registration)) registration.abandon(refusals.exiting());
    }
    await this.#departures.each(registrations, byItself("stopping"));
    for (const registration of registrations) {
      while (!isOver(registration)) await registration.untilEnded();
    }
    this.#records.stop();
    const failures = this.#table.all().map(({ name, closeFailure }) => ({ name, error: closeFailure }));
    if (failures.length > 0) throw refusals.unregisterAllFailed(failures);
  }
}

/** Whether there is something to abandon, so that no error is made for each of 100,000 others. */
function isPending({ state }: Registration): boolean {
  return state === "registering";
}

/** Whether there is nothing more that could end it. */
function isOver({ state }: Registration): boolean {
  return state === "gone" || state === "close_failed";
}

/** What the registry does of itself. */
function byItself(reason: ChangeReason): Origin {
  const context: CallContext = { owner: anonymous, protocol: "library", requestId: reason };
  return { context, startedAt: performance.now(), reason };
}

function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error));
}
