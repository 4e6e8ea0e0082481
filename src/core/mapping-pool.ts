import { isStickyResult } from "./cuda-results.js";
import { type CudaDriver, type DeviceMapping, DriverError } from "./driver.js";
import { RegistryError } from "./errors.js";
import type { IpcMemHandle } from "./handle.js";

/** One use of a mapping that other regions may use as well. */
export interface SharedMapping {
  readonly mapping: DeviceMapping;
}

class Entry implements SharedMapping {
  readonly key: string;
  users = 1;
  /** Whether its bytes count among those that its device may have mapped. */
  admitted = false;
  opened!: Promise<SharedMapping>;
  mapping!: DeviceMapping;
  /** The driver's close in progress. */
  closing: Promise<true> | undefined;
  closeFailed = false;

  constructor(key: string) {
    this.key = key;
  }
}

/**
 * The mappings of this process, one for each (device, handle) however many regions are on it. The driver sees
 * one open or close at a time for each of them, and as many at once as there are different ones.
 */
export class MappingPool {
  readonly #driver: CudaDriver;
  readonly #entries = new Map<string, Entry>();
  readonly #maxDeviceBytes: bigint | undefined;
  /** Bytes of what is admitted on each device. */
  readonly #deviceBytes = new Map<number, bigint>();
  #open = 0;
  #stickyFault: unknown;

  constructor(driver: CudaDriver, maxDeviceBytes?: bigint) {
    this.#driver = driver;
    this.#maxDeviceBytes = maxDeviceBytes;
  }

  /** Mappings the driver opened and has not got back: its opens less its closes. */
  get open(): number {
    return this.#open;
  }

  /**
   * Opens the handle, or joins the mapping there is. Rejects as the driver's open does, also with UNAVAILABLE
   * where it joins one while the driver is unusable, and with INVALID_ARGUMENT while a mapping of this handle
   * is left over from a close that failed.
   */
  acquire(deviceId: number, handle: IpcMemHandle): Promise<SharedMapping> {
    const key = `${deviceId}/${handle.exposeKey()}`;
    return this.#entries.has(key) ? this.#join(key, deviceId, handle) : this.#openNew(key, deviceId, handle);
  }

  async #join(key: string, deviceId: number, handle: IpcMemHandle): Promise<SharedMapping> {
    for (;;) {
      const entry = this.#entries.get(key);
      if (entry === undefined) return await this.#openNew(key, deviceId, handle);
      if (entry.closing !== undefined) {
        await entry.closing.catch(noop);
      } else if (entry.closeFailed) {
        throw new RegistryError(
          "INVALID_ARGUMENT",
          "an earlier mapping of this handle could not be closed; unregister its region again, or export the memory anew",
        );
      } else {
        this.#refuseIfLost();
        entry.users++;
        return await entry.opened;
      }
    }
  }

  /** Bytes of the allocations mapped on a device, shared ones counted once. */
  mappedBytes(deviceId: number): bigint {
    return this.#deviceBytes.get(deviceId) ?? 0n;
  }

  /**
   * Counts what is mapped among the bytes of its device, unless another user did. Where that would exceed the
   * most that may be mapped there, it tells that limit and counts nothing; null if all is well.
   */
  admit(shared: SharedMapping): bigint | null {
    const limit = this.#maxDeviceBytes;
    const entry = shared as Entry;
    if (entry.admitted) return null;
    const { deviceId, byteSize } = entry.mapping;
    const bytes = this.mappedBytes(deviceId) + byteSize;
    if (limit !== undefined && bytes > limit) return limit;
    this.#deviceBytes.set(deviceId, bytes);
    entry.admitted = true;
    return null;
  }

  /**
   * Ends one use; the last one closes the mapping, and answers true. Where that close fails the use goes on: release it again
   * to try again, which asks the driver nothing after a fault that only a new process mends.
   */
  release(shared: SharedMapping): Promise<boolean> {
    const entry = shared as Entry;
    if (entry.users > 1) {
      entry.users--;
      return Promise.resolve(false);
    }
    if (entry.closeFailed && this.#stickyFault !== undefined) return Promise.reject(this.#stickyFault);
    entry.closing = this.#callClose(entry);
    return entry.closing;
  }

  /** Joining a mapping asks the driver nothing, so nothing else would tell that its memory cannot be reached. */
  #refuseIfLost(): void {
    const { health } = this.#driver;
    if (health.state === "unusable") throw new RegistryError("UNAVAILABLE", health.reason);
  }

  #openNew(key: string, deviceId: number, handle: IpcMemHandle): Promise<SharedMapping> {
    const entry = new Entry(key);
    this.#entries.set(key, entry);
    entry.opened = this.#callOpen(entry, deviceId, handle);
    return entry.opened;
  }

  async #callOpen(entry: Entry, deviceId: number, handle: IpcMemHandle): Promise<SharedMapping> {
    try {
      entry.mapping = await this.#driver.open(deviceId, handle);
      this.#open++;
      return entry;
    } catch (error) {
      this.#entries.delete(entry.key);
      this.#noteFault(error);
      throw error;
    }
  }

  async #callClose(entry: Entry): Promise<true> {
    try {
      await entry.mapping.close();
      this.#open--;
      this.#entries.delete(entry.key);
      if (entry.admitted) this.#discount(entry.mapping);
      return true;
    } catch (error) {
      entry.closeFailed = true;
      this.#noteFault(error);
      throw error;
    } finally {
      entry.closing = undefined;
    }
  }

  #discount({ deviceId, byteSize }: DeviceMapping): void {
    this.#deviceBytes.set(deviceId, this.mappedBytes(deviceId) - byteSize);
  }

  #noteFault(error: unknown): void {
    const refusal =
      error instanceof DriverError ? error : error instanceof RegistryError ? error.driver : undefined;
    if (refusal !== undefined && isStickyResult(refusal.cudaCode)) this.#stickyFault = error;
  }
}

function noop(): void {}
