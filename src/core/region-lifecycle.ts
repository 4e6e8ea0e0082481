import type { CudaDriver } from "./driver.js";
import type { RegistryError } from "./errors.js";
import type { MappingPool, SharedMapping } from "./mapping-pool.js";
import * as refusals from "./refusals.js";
import type { RegionStatus, RegisterRequest } from "./region.js";
import type { RegionTable } from "./region-table.js";
import type { Origin, Registration } from "./registration.js";

/** What a region goes through: from a reserved name to a mapping that is shown, and back. */
export class RegionLifecycle {
  readonly #driver: CudaDriver;
  readonly #pool: MappingPool;
  readonly #table: RegionTable;

  constructor(driver: CudaDriver, pool: MappingPool, table: RegionTable) {
    this.#driver = driver;
    this.#pool = pool;
    this.#table = table;
  }

  /** Carries out the register that reserved the name, or undoes it, also where it was abandoned meanwhile. */
  async open(registration: Registration, request: RegisterRequest, origin: Origin): Promise<RegionStatus> {
    const { name } = registration;
    let mapping: SharedMapping;
    try {
      registration.deviceId = await this.#ordinalOf(request.deviceId);
      if (registration.abandoned) throw registration.abandoned;
      mapping = await this.#pool.acquire(registration.deviceId, request.handle);
    } catch (error) {
      this.#table.free(registration);
      throw refusals.openFailed(name, error);
    }
    registration.mapping = mapping;
    const allocated = mapping.mapping.byteSize;
    if (registration.byteSize > allocated) {
      const problem = `byte_size ${registration.byteSize} exceeds the ${allocated} bytes of the allocation`;
      return this.#undo(registration, refusals.invalidArguments(name, problem), origin);
    }
    const limit = this.#pool.admit(mapping);
    if (limit !== null) {
      return this.#undo(
        registration,
        refusals.deviceFull(name, registration.deviceId, allocated, limit),
        origin,
      );
    }
    const { change, refusal } = await this.#table.commit(registration, "registered", origin);
    if (change === null)
      return this.#undo(registration, registration.abandoned ?? refusals.exiting(), origin);
    if (refusal !== null)
      return this.#undo(registration, refusals.registerFault(name, refusal.error), origin, true);
    return change.region;
  }

  /** Ends a registration, whatever state it is in. See the registry's `unregister`. */
  async unregister(registration: Registration, origin: Origin): Promise<void> {
    if (registration.state === "registering") await registration.settled;
    if (registration.leaving !== undefined) return registration.leaving;
    if (registration.state === "gone" || registration.state === "draining") return;
    await this.#leave(
      registration,
      registration.pins > 0 ? this.#drain(registration, origin) : this.#close(registration, origin),
    );
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

  async #drain(registration: Registration, origin: Origin): Promise<void> {
    registration.drain = origin;
    await this.#table.commit(registration, "draining", origin);
  }

  async #close(registration: Registration, origin: Origin): Promise<void> {
    registration.closing = true;
    await this.#release(registration, origin);
    await this.#table.commit(registration, "unregistered", origin);
  }

  /** Gives the mapping back, or keeps the region as one that could not be closed and rejects. */
  async #release(registration: Registration, origin: Origin): Promise<void> {
    try {
      await this.#pool.release(registration.mapping as SharedMapping);
    } catch (cause) {
      const failure = refusals.closeFailed(cause);
      registration.closeFailure = failure;
      await this.#table.commit(registration, "close_failed", origin, cause);
      registration.closing = false;
      throw failure;
    }
  }

  /** `told`: observers took it for registered, so they have to hear that it is not. */
  async #undo(
    registration: Registration,
    reason: RegistryError,
    origin: Origin,
    told = false,
  ): Promise<never> {
    try {
      await this.#release(registration, origin);
    } catch (failure) {
      throw refusals.undoFailed(registration.name, reason, failure as RegistryError);
    }
    if (told) await this.#table.commit(registration, "unregistered", origin, reason);
    else this.#table.free(registration);
    throw reason;
  }

  async #ordinalOf(deviceId: bigint): Promise<number> {
    const devices = await this.#driver.devices().catch((error: unknown) => {
      throw refusals.devicesFailed(error);
    });
    const device = devices.find(({ ordinal }) => BigInt(ordinal) === deviceId);
    if (device === undefined) throw refusals.unknownDevice(deviceId, devices);
    return device.ordinal;
  }
}
