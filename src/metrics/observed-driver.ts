import { type CudaDevice, type CudaDriver, type DeviceMapping, DriverError } from "../core/driver.js";
import { RegistryError } from "../core/errors.js";
import type { IpcMemHandle } from "../core/handle.js";

/** What the observed driver was asked for. */
export type DriverCall = "devices" | "open" | "close" | "copy";

/** Told how each call of the driver ended. */
export interface DriverCallObserver {
  /** An open or a close ended, well or not, after so many milliseconds; its wait for a turn is part of them. */
  ended(call: "open" | "close", deviceId: number, ms: number): void;
  /** CUDA refused a call with the error of this name. */
  refused(call: DriverCall, cudaError: string): void;
  /** So many bytes are mapped more (1) or less (-1). */
  mapped(deviceId: number, byteSize: bigint, by: 1 | -1): void;
}

/** A driver that tells an observer of every call and does nothing else of its own. */
export class ObservedDriver implements CudaDriver {
  readonly #driver: CudaDriver;
  readonly #observer: DriverCallObserver;

  constructor(driver: CudaDriver, observer: DriverCallObserver) {
    this.#driver = driver;
    this.#observer = observer;
  }

  get kind() {
    return this.#driver.kind;
  }

  get health() {
    return this.#driver.health;
  }

  get knownDevices(): readonly CudaDevice[] | null {
    return this.#driver.knownDevices ?? null;
  }

  devices(): Promise<readonly CudaDevice[]> {
    return watched(this.#observer, "devices", this.#driver.devices());
  }

  async open(deviceId: number, handle: IpcMemHandle): Promise<DeviceMapping> {
    const startedAt = performance.now();
    const opened = this.#driver.open(deviceId, handle);
    const mapping = await timed(this.#observer, "open", deviceId, startedAt, opened);
    this.#observer.mapped(deviceId, mapping.byteSize, 1);
    return new ObservedMapping(mapping, this.#observer);
  }

  async freeBytes(deviceId: number): Promise<bigint | null> {
    return (await this.#driver.freeBytes?.(deviceId)) ?? null;
  }
}

class ObservedMapping implements DeviceMapping {
  readonly #mapping: DeviceMapping;
  readonly #observer: DriverCallObserver;
  readonly deviceId: number;
  readonly byteSize: bigint;
  #closed = false;

  constructor(mapping: DeviceMapping, observer: DriverCallObserver) {
    this.#mapping = mapping;
    this.#observer = observer;
    this.deviceId = mapping.deviceId;
    this.byteSize = mapping.byteSize;
  }

  // An accessor, so that printing the object does not show it.
  get devicePointer(): bigint {
    return this.#mapping.devicePointer;
  }

  read(offset: bigint, into: Uint8Array): Promise<void> {
    return watched(this.#observer, "copy", this.#mapping.read(offset, into));
  }

  write(offset: bigint, from: Uint8Array): Promise<void> {
    return watched(this.#observer, "copy", this.#mapping.write(offset, from));
  }

  checksum(offset: bigint, byteSize: bigint, seed?: number): Promise<number> {
    return watched(this.#observer, "copy", this.#mapping.checksum(offset, byteSize, seed));
  }

  async close(): Promise<void> {
    if (this.#closed) return this.#mapping.close();
    const startedAt = performance.now();
    await timed(this.#observer, "close", this.deviceId, startedAt, this.#mapping.close());
    if (!this.#closed) this.#observer.mapped(this.deviceId, this.byteSize, -1);
    this.#closed = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function timed<T>(
  observer: DriverCallObserver,
  call: "open" | "close",
  deviceId: number,
  startedAt: number,
  done: Promise<T>,
): Promise<T> {
  const ended = () => observer.ended(call, deviceId, performance.now() - startedAt);
  return done.then(
    (result) => {
      ended();
      return result;
    },
    (error) => {
      tellRefusal(observer, call, error);
      ended();
      throw error;
    },
  );
}

async function watched<T>(observer: DriverCallObserver, call: DriverCall, done: Promise<T>): Promise<T> {
  try {
    return await done;
  } catch (error) {
    tellRefusal(observer, call, error);
    throw error;
  }
}

function tellRefusal(observer: DriverCallObserver, call: DriverCall, error: unknown): void {
  const refusal =
    error instanceof DriverError ? error : error instanceof RegistryError ? error.driver : undefined;
  if (refusal !== undefined) observer.refused(call, refusal.cudaError);
}
