import { abortError, listenForAbort, untilDoneOrAborted } from "./abort.js";
import type { RegistryLimits } from "./capacity.js";
import type { CudaDriver } from "./driver.js";
import type { RegistryError } from "./errors.js";
import { forEachBounded } from "./for-each-bounded.js";
import { MappingPool } from "./mapping-pool.js";
import { assertWithin, Pin } from "./pin.js";
import * as refusals from "./refusals.js";
import {
  anonymous,
  type CallContext,
  type RegionPin,
  type RegionStatus,
  type RegionWindow,
  type RegisterRequest,
  type RegistryChange,
  type RegistryObserver,
} from "./region.js";
import { RegionLifecycle } from "./region-lifecycle.js";
import { compareRegionNames, quoteRegionName, regionNameProblem } from "./region-name.js";
import { RegionTable } from "./region-table.js";
import { type Origin, Registration } from "./registration.js";

export interface RegistryOptions {
  readonly driver: CudaDriver;
  readonly observers?: readonly RegistryObserver[];
  /** Registers beyond them are RESOURCE_EXHAUSTED. */
  readonly limits?: RegistryLimits;
  /** Milliseconds since the epoch; for tests. */
  readonly now?: () => number;
  /** Told what an observer rejects a change with that cannot be undone. Without it: a process warning. */
  readonly onObserverError?: (error: unknown, change: RegistryChange) => void;
}

const maxByteSize = 2n ** 64n - 1n;

/** Regions that one call unregisters at the same time. */
const unregisterAllConcurrency = 64;

const closeContext: CallContext = { owner: anonymous, protocol: "library", requestId: "close" };

/**
 * The one owner of native handles: opens them, keeps them mapped, lists them, closes them. One operation at a
 * time per name, and none waits for another name's. Observers must not wait for a call of the registry.
 */
export class RegionRegistry implements AsyncDisposable {
  readonly #pool: MappingPool;
  readonly #table: RegionTable;
  readonly #lifecycle: RegionLifecycle;
  #generation = 0n;
  #refusing = false;
  #closed: Promise<void> | undefined;

  constructor(options: RegistryOptions) {
    const limits = options.limits ?? {};
    this.#pool = new MappingPool(options.driver, limits.maxDeviceBytes);
    this.#table = new RegionTable({
      observers: options.observers ?? [],
      limits,
      now: options.now ?? Date.now,
      onObserverError: options.onObserverError ?? warn,
    });
    this.#lifecycle = new RegionLifecycle(options.driver, this.#pool, this.#table);
  }

  /** Grows by one with every visible change; equal revisions have equal statuses, but for `pins`. */
  get revision(): bigint {
    return this.#table.revision;
  }

  /** Mappings the driver opened and has not got back: fewer than regions where these share a handle. */
  get mappings(): number {
    return this.#pool.open;
  }

  /**
   * Opens the handle and shows the region. Rejects with INVALID_ARGUMENT, ALREADY_EXISTS, UNAVAILABLE,
   * RESOURCE_EXHAUSTED or INTERNAL, and with CANCELLED or DEADLINE_EXCEEDED as soon as the context's signal
   * is aborted: what the driver was doing by then is undone once it is done.
   */
  async register(request: RegisterRequest, context: CallContext): Promise<RegionStatus> {
    const origin = { context, startedAt: performance.now() };
    const { name, byteSize } = request;
    const problem = regionNameProblem(name);
    if (problem !== null) throw refusals.invalidArguments(name, problem);
    for (let holder = this.#table.get(name); holder !== undefined; holder = this.#table.get(name)) {
      if (this.#refusing) break;
      if (!holder.isRollingBack) throw refusals.alreadyInManager(name);
      await untilDoneOrAborted(holder.settled, context.signal);
      if (context.signal?.aborted) throw this.#abortError(context.signal);
    }
    if (this.#refusing) throw refusals.exiting();
    if (byteSize < 1n) throw refusals.invalidArguments(name, "byte_size must be at least 1");
    if (byteSize > maxByteSize) {
      throw refusals.invalidArguments(
        name,
        `byte_size ${byteSize} is over ${maxByteSize}, the most there can be`,
      );
    }
    // Asked for no sooner: making a signal costs a face as much as all of the above.
    const { signal } = context;
    if (signal?.aborted) throw this.#abortError(signal);
    const registration = new Registration(request, ++this.#generation, context);
    this.#table.reserve(registration);
    return new Promise((resolve, reject) => {
      registration.onAbandon = reject;
      const stopListening = listenForAbort(signal, (aborted) => {
        registration.abandon(this.#abortError(aborted));
      });
      registration.settled = this.#lifecycle
        .open(registration, request, origin)
        .then(resolve, reject)
        .finally(stopListening);
    });
  }

  /**
   * Closes the region, or, while it is pinned, has that done when its last pin is released. Waits for a
   * register of that name under way; does nothing if there is no such region. Carried out whether or not the
   * caller stays. Rejects with INTERNAL if the driver refuses the close: the name stays taken, call it again.
   */
  async unregister(name: string, context: CallContext): Promise<void> {
    const registration = this.#table.get(name);
    if (registration === undefined) return;
    await this.#lifecycle.unregister(registration, { context, startedAt: performance.now() });
  }

  /** Unregisters every region there is at the time of the call. Goes on past failures, then rejects with INTERNAL. */
  async unregisterAll(context: CallContext): Promise<void> {
    const origin = { context, startedAt: performance.now() };
    const failures = await this.#unregisterEach(this.#table.all(), origin);
    if (failures.length > 0) throw refusals.unregisterAllFailed(failures);
  }

  /** Every region, sorted by the bytes of its name. The same array until something changes. */
  statuses(): readonly RegionStatus[] {
    return this.#table.statuses();
  }

  /** One region. Throws NOT_FOUND. */
  status(name: string): RegionStatus {
    return this.#visible(name).status;
  }

  /** Holds a region (or a window of it) open. Throws NOT_FOUND, OUT_OF_RANGE or FAILED_PRECONDITION. */
  pin(name: string, window: RegionWindow | null, _context: CallContext): RegionPin {
    const registration = this.#visible(name);
    if (registration.closing || registration.mapping === undefined) throw refusals.noSuchRegion(name);
    if (registration.state === "close_failed") throw refusals.unusable(name);
    const { byteSize } = registration;
    const pinned = window ?? { offset: 0n, byteSize };
    assertWithin(pinned, byteSize, `shared memory region ${quoteRegionName(name)}`);
    this.#table.countPin(registration, 1);
    return new Pin(registration.status, registration.mapping.mapping, pinned, () => {
      this.#table.countPin(registration, -1);
      this.#lifecycle.closeIfDrained(registration);
    });
  }

  /** Refuses registers from now on; everything else is still answered. */
  refuseRegisters(): void {
    this.#refusing = true;
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

  #visible(name: string): Registration {
    const registration = this.#table.get(name);
    if (registration === undefined || registration.state === "registering") throw refusals.noSuchRegion(name);
    return registration;
  }

  #abortError(signal: AbortSignal): RegistryError {
    return this.#refusing ? refusals.exiting() : abortError(signal);
  }

  async #unregisterEach(
    registrations: readonly Registration[],
    origin: Origin,
  ): Promise<refusals.FailedRegion[]> {
    // Whoever waits for an open comes last, so that a slow one delays nobody else.
    const pending = registrations.filter(({ state }) => state === "registering");
    const others = registrations.filter(({ state }) => state !== "registering");
    const failures: refusals.FailedRegion[] = [];
    await forEachBounded([...others, ...pending], unregisterAllConcurrency, async (registration) => {
      try {
        await this.#lifecycle.unregister(registration, origin);
      } catch (error) {
        failures.push({ name: registration.name, error });
      }
    });
    return failures.sort((a, b) => compareRegionNames(a.name, b.name));
  }

  async #close(): Promise<void> {
    this.#refusing = true;
    const registrations = this.#table.all();
    for (const registration of registrations) registration.abandon(refusals.exiting());
    await this.#unregisterEach(registrations, { context: closeContext, startedAt: performance.now() });
    while (this.#table.all().some(({ state }) => state !== "close_failed")) await this.#table.nextChange();
    const failures = this.#table.all().map(({ name, closeFailure }) => ({ name, error: closeFailure }));
    if (failures.length > 0) throw refusals.unregisterAllFailed(failures);
  }
}

function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error));
}
