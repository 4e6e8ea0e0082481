import type { Clock } from "./clock.js";
import type { CudaDevice, CudaDriver } from "./driver.js";
import type { RegistryError } from "./errors.js";
import type { MappingPool, SharedMapping } from "./mapping-pool.js";
import * as refusals from "./refusals.js";
import type { RegionStatus, RegisterRequest } from "./region.js";
import type { RegionRecords } from "./region-records.js";
import type { RegionTable } from "./region-table.js";
import type { RegionWatch } from "./region-watch.js";
import type { Origin, Registration } from "./registration.js";

export interface RegionLifecycleParts {
  readonly driver: CudaDriver;
  readonly clock: Clock;
  readonly pool: MappingPool;
  readonly table: RegionTable;
  readonly records: RegionRecords;
  readonly watch: RegionWatch;
}

/** How a register differs from the plain one. */
export interface OpenOptions {
  /** Whose place it takes. */
  readonly replaced?: Registration | undefined;
  /** Whether it is of an earlier process, and so written down already. */
  readonly isAdopted?: boolean | undefined;
  /** What to wait for before the driver is asked; the name is taken meanwhile. */
  readonly begin?: Promise<void> | undefined;
}

/** What a region goes through: from a reserved name to a mapping that is shown, and back. */
export class RegionLifecycle {
  readonly #driver: CudaDriver;
  readonly #clock: Clock;
  readonly #pool: MappingPool;
  readonly #table: RegionTable;
  readonly #records: RegionRecords;
  readonly #watch: RegionWatch;

  constructor(parts: RegionLifecycleParts) {
    this.#driver = parts.driver;
    this.#clock = parts.clock;
    this.#pool = parts.pool;
    this.#table = parts.table;
    this.#records = parts.records;
    this.#watch = parts.watch;
  }

  /** Carries out the register that reserved the name, or undoes it, also where it was abandoned meanwhile. */
  async open(
    registration: Registration,
    request: RegisterRequest,
    origin: Origin,
    { replaced, isAdopted = false, begin }: OpenOptions = {},
  ): Promise<RegionStatus> {
    const { name } = registration;
    let mapping: SharedMapping;
    try {
      if (begin !== undefined) await begin;
      if (registration.abandoned) throw registration.abandoned;
      const devices = this.#driver.knownDevices ?? (await this.#driver.devices().catch(devicesFailed));
      const device = deviceOf(request, devices);
      registration.deviceId = device.ordinal;
      registration.deviceUuid = device.uuid;
      if (registration.exporter !== null) await this.#watch.begin(registration);
      if (registration.abandoned) throw registration.abandoned;
      mapping = await this.#pool.acquire(registration.deviceId, request.handle);
    } catch (error) {
      if (registration.isUnwanted) await this.#records.leaveEventually(registration);
      this.#free(registration);
      throw refusals.openFailed(name, error);
    }
    registration.mapping = mapping;
    const misfit = this.#misfit(registration, mapping) ?? (replaced && whyNotReplaceable(replaced));
    if (misfit) return this.#undo(registration, misfit, origin);
    if (registration.isDryRun) return this.#endDryRun(registration, origin);
    if (registration.abandoned) return this.#undo(registration, registration.abandoned, origin);
    try {
      if (replaced !== undefined) this.#beginHandOver(replaced, registration);
      if (!isAdopted && !this.#records.isOff) await this.#records.enter(registration, replaced);
      if (replaced !== undefined) await this.#handOver(replaced, origin);
    } catch (error) {
      if (replaced !== undefined) this.#keep(replaced);
      return this.#undo(registration, error as RegistryError, origin);
    }
    this.#watch.startLease(registration);
    const told = this.#table.commit(registration, isAdopted ? "adopted" : "registered", origin);
    // Where nobody has to be waited for, which is most often so, a promise costs as much as the rest of it.
    const { change, refusal } = told instanceof Promise ? await told : told;
    if (change === null)
      return this.#undo(registration, registration.abandoned ?? refusals.exiting(), origin);
    if (refusal !== null)
      return this.#undo(registration, refusals.registerFault(name, refusal.error), origin, true);
    return change.region;
  }

  /** Ends a registration, whatever state it is in. See the registry's `unregister`. */
  unregister(registration: Registration, origin: Origin): Promise<void> {
    const { state, replacing, leaving } = registration;
    if (state === "registering" || replacing !== undefined || leaving !== undefined) {
      return this.#unregisterAfter(registration, origin);
    }
    return this.#unregisterNow(registration, origin);
  }

  #unregisterNow(registration: Registration, origin: Origin): Promise<void> {
    if (registration.state === "gone" || registration.state === "draining") return Promise.resolve();
    return this.#leave(registration, this.#end(registration, origin));
  }

  /** The same, once nothing else is being done with it. */
  async #unregisterAfter(registration: Registration, origin: Origin): Promise<void> {
    if (registration.state === "registering") {
      // What waits for a driver might wait for ever.
      if (origin.reason !== "stopping" && registration.reason === "adopted") {
        registration.isUnwanted = true;
        registration.abandon(refusals.leaving(registration.name));
      }
      await registration.settled;
    }
    while (registration.replacing !== undefined) await registration.replacing;
    while (registration.leaving !== undefined) {
      if (origin.reason !== "stopping") return registration.leaving;
      // It stays if that cannot be written down, which a stop does not ask for.
      await registration.leaving.catch(() => {});
    }
    await this.#unregisterNow(registration, origin);
  }

  /** Closes a region that waits for its last pin, if there is none. */
  closeIfDrained(registration: Registration): void {
    const { state, pins, leaving, drain } = registration;
    if (state !== "draining" || pins > 0 || leaving !== undefined || drain === undefined) return;
    // Nobody waits for it: the observers are told if it fails, and the next unregister tries again.
    this.#leave(registration, this.#close(registration, drain)).catch(() => {});
  }

  #leave(registration: Registration, leaving: Promise<void>): Promise<void> {
    registration.leaving = leaving;
    const ended = () => {
      registration.leaving = undefined;
      this.closeIfDrained(registration);
    };
    leaving.then(ended, ended);
    return leaving;
  }

  /** A stop is no end to what an earlier process's successor is to take up again, so it is not written down. */
  #end(registration: Registration, origin: Origin): Promise<void> {
    if (!registration.isJournaled || origin.reason === "stopping") return this.#depart(registration, origin);
    return this.#records.leave(registration).then(() => this.#depart(registration, origin));
  }

  #depart(registration: Registration, origin: Origin): Promise<void> {
    this.#watch.end(registration);
    return registration.pins > 0 ? this.#drain(registration, origin) : this.#close(registration, origin);
  }

  async #drain(registration: Registration, origin: Origin): Promise<void> {
    registration.drain = origin;
    await this.#table.commit(registration, "draining", origin);
  }

  async #close(registration: Registration, origin: Origin): Promise<void> {
    registration.closing = true;
    await this.#release(registration, origin);
    const told = this.#table.commit(registration, "unregistered", origin);
    if (told instanceof Promise) await told;
  }

  /** Gives the mapping back, or keeps the region as one that could not be closed and rejects. */
  #release(registration: Registration, origin: Origin): Promise<void> {
    return this.#giveBack(registration).then(
      (isClosed) => {
        registration.isMappingClosed = isClosed;
      },
      (cause) => this.#closeFailed(registration, origin, cause),
    );
  }

  #giveBack({ leftovers, mapping }: Registration): Promise<boolean> {
    return leftovers === undefined
      ? this.#pool.release(mapping as SharedMapping)
      : this.#giveAllBack(leftovers, mapping as SharedMapping);
  }

  async #giveAllBack(leftovers: SharedMapping[], mapping: SharedMapping): Promise<boolean> {
    for (let last = leftovers.at(-1); last !== undefined; last = leftovers.at(-1)) {
      await this.#pool.release(last);
      leftovers.pop();
    }
    return await this.#pool.release(mapping);
  }

  async #closeFailed(registration: Registration, origin: Origin, cause: unknown): Promise<never> {
    const { name, mapping } = registration;
    const failure = refusals.closeFailed(cause);
    const holder = this.#table.get(name);
    if (holder !== undefined && holder !== registration) {
      holder.leftovers = [...(holder.leftovers ?? []), mapping as SharedMapping];
      this.#free(registration);
      throw failure;
    }
    registration.closeFailure = failure;
    await this.#table.commit(registration, "close_failed", origin, cause);
    registration.closing = false;
    throw failure;
  }

  /** From here on it is too late to abandon `successor`, and nobody may begin to use what goes. */
  #beginHandOver(replaced: Registration, successor: Registration): void {
    successor.beginCommit();
    replaced.refusesPins = true;
    replaced.successor = successor;
  }

  /** Closes the region whose place another takes, which has its name then. */
  async #handOver(replaced: Registration, origin: Origin): Promise<void> {
    this.#watch.end(replaced);
    await this.#close(replaced, { ...origin, reason: "replaced" });
  }

  /** No other takes the place of the region. */
  #keep(replaced: Registration): void {
    replaced.refusesPins = false;
    replaced.successor = undefined;
  }

  /** `told`: observers took it for registered, so they have to hear that it is not. */
  async #undo(
    registration: Registration,
    reason: RegistryError,
    origin: Origin,
    told = false,
  ): Promise<never> {
    this.#watch.end(registration);
    // Whether one of an earlier process is to be tried again by a later one is not known here.
    if (registration.isJournaled && (origin.reason !== "adopted" || registration.isUnwanted)) {
      await this.#records.leaveEventually(registration);
    }
    try {
      await this.#release(registration, origin);
    } catch (failure) {
      throw refusals.undoFailed(registration.name, reason, failure as RegistryError);
    }
    if (told) await this.#table.commit(registration, "unregistered", origin, reason);
    else this.#free(registration);
    throw reason;
  }

  async #endDryRun(registration: Registration, origin: Origin): Promise<RegionStatus> {
    // What is told is the region as it would be, were it registered now.
    registration.registeredAt = this.#clock.now();
    const { status } = registration;
    this.#watch.end(registration);
    await this.#release(registration, origin);
    this.#free(registration);
    return status;
  }

  #free(registration: Registration): void {
    this.#watch.end(registration);
    this.#table.free(registration);
  }

  /** Why the region cannot be on that allocation; null if it can. */
  #misfit({ name, deviceId, offset, byteSize }: Registration, shared: SharedMapping): RegistryError | null {
    const allocated = shared.mapping.byteSize;
    if (offset + byteSize > allocated) {
      const what = offset === 0n ? `byte_size ${byteSize}` : `offset ${offset} and byte_size ${byteSize}`;
      const verb = offset === 0n ? "exceeds" : "together exceed";
      return refusals.invalidArguments(name, `${what} ${verb} the ${allocated} bytes of the allocation`);
    }
    const limit = this.#pool.admit(shared);
    return limit === null ? null : refusals.deviceFull(name, deviceId, allocated, limit);
  }
}

function devicesFailed(error: unknown): never {
  throw refusals.devicesFailed(error);
}

/** The device that is meant. Throws INVALID_ARGUMENT if there is no such one. */
function deviceOf({ deviceId, deviceUuid }: RegisterRequest, devices: readonly CudaDevice[]): CudaDevice {
  const device =
    deviceUuid === undefined
      ? devices.find(({ ordinal }) => BigInt(ordinal) === deviceId)
      : devices.find(({ uuid }) => uuid === deviceUuid);
  if (device === undefined) throw refusals.unknownDevice(deviceUuid ?? deviceId, devices);
  if (deviceId !== undefined && BigInt(device.ordinal) !== deviceId) {
    throw refusals.devicesDisagree(deviceId, device);
  }
  return device;
}

/** Why another region cannot take this one's place now; null if it can. */
function whyNotReplaceable({ name, pins }: Registration): RegistryError | null {
  if (pins === 0) return null;
  return refusals.notReplaceable(name, `it is used by ${pins}; wait until they let go`);
}
