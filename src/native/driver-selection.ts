import type { CudaDevice, CudaDriver, DeviceMapping, DriverHealth, DriverKind } from "../core/driver.js";
import type { IpcMemHandle } from "../core/handle.js";
import type { RawCall } from "./addon.js";
import type { DeviceAllocation } from "./device-memory.js";
import { chooseDriver, type DriverChoice } from "./driver-choice.js";
import type { DeviceMemoryInfo, DriverDescription, NativeDriver } from "./native-driver.js";

export type { DeviceAllocation } from "./device-memory.js";

export interface DriverOptions extends DriverChoice {
  /** Milliseconds; for tests. */
  readonly now?: () => number;
}

// A driver can appear while we run (a module loaded, a container given its GPU); asking costs little, yet not
// nothing, so a client that calls in a loop does not make it happen in a loop.
const probeIntervalMs = 1000;

/**
 * The driver of this process, chosen in the background. While there is no usable one it is `unusable` with the
 * reason, and later calls look again, at most once a second.
 */
export class SelectedDriver implements CudaDriver {
  readonly #options: DriverOptions;
  readonly #now: () => number;
  #selection: Promise<NativeDriver> | null = null;
  #driver: NativeDriver | null = null;
  #reason: string | null = null;
  #failedAt = 0;

  constructor(options: DriverOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /** Begins to choose, once; the outcome shows in `health`. */
  start(): void {
    this.#selected().catch(() => {
      // Told by `health` and to whoever calls.
    });
  }

  get kind(): DriverKind | null {
    return this.#driver?.kind ?? null;
  }

  get health(): DriverHealth {
    if (this.#driver !== null) return this.#driver.health;
    return this.#reason === null ? { state: "starting" } : { state: "unusable", reason: this.#reason };
  }

  /** null until a library was chosen. */
  get description(): DriverDescription | null {
    return this.#driver?.description ?? null;
  }

  get knownDevices(): readonly CudaDevice[] | null {
    return this.#driver?.knownDevices ?? null;
  }

  devices(): Promise<readonly CudaDevice[]> {
    return this.#driver?.devices() ?? this.#selected().then((driver) => driver.devices());
  }

  open(deviceId: number, handle: IpcMemHandle): Promise<DeviceMapping> {
    return (
      this.#driver?.open(deviceId, handle) ?? this.#selected().then((driver) => driver.open(deviceId, handle))
    );
  }

  /** Allocates `byteSize` bytes of device memory for other processes to import. Rejects as `open` does. */
  async allocate(deviceId: number, byteSize: bigint): Promise<DeviceAllocation> {
    return (await this.#selected()).allocate(deviceId, byteSize);
  }

  /** A `CUdevice_attribute` by its number, or null if the driver does not know it. Makes no context. */
  async attribute(deviceId: number, attribute: number): Promise<number | null> {
    return (await this.#selected()).attribute(deviceId, attribute);
  }

  /** Bytes free and in all on a device. Needs a context on it, so it costs GPU memory itself for a while. */
  async memoryInfo(deviceId: number): Promise<DeviceMemoryInfo> {
    return (await this.#selected()).memoryInfo(deviceId);
  }

  async freeBytes(deviceId: number): Promise<bigint | null> {
    return (await this.#selected()).freeBytes(deviceId);
  }

  /** Looks whether the driver still works, at the price of a few cheap calls. The outcome shows in `health`. */
  async probe(inUse: readonly number[]): Promise<void> {
    await (await this.#selected()).probe(inUse);
  }

  /** The calls that the driver has not answered yet: what to log when one seems stuck. */
  runningCalls(): readonly RawCall[] {
    return this.#driver?.runningCalls() ?? [];
  }

  #selected(): Promise<NativeDriver> {
    const stale = this.#reason !== null && this.#now() - this.#failedAt >= probeIntervalMs;
    if (this.#selection === null || (stale && this.#driver === null)) this.#selection = this.#select();
    return this.#selection;
  }

  async #select(): Promise<NativeDriver> {
    // Never stale while it runs: calls that come meanwhile wait for this attempt.
    this.#failedAt = Number.POSITIVE_INFINITY;
    try {
      this.#driver = await chooseDriver(this.#options);
      return this.#driver;
    } catch (error) {
      this.#reason = error instanceof Error ? error.message : String(error);
      this.#failedAt = this.#now();
      throw error;
    }
  }
}

/** Makes the driver of this process; nothing is loaded before `start`, or the first call that needs it. */
export function createCudaDriver(options: DriverOptions): SelectedDriver {
  return new SelectedDriver(options);
}
