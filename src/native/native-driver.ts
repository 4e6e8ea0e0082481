import { isStickyResult } from "../core/cuda-results.js";
import {
  type CudaDevice,
  type CudaDriver,
  DriverError,
  type DriverHealth,
  type DriverKind,
} from "../core/driver.js";
import { RegistryError } from "../core/errors.js";
import type { IpcMemHandle } from "../core/handle.js";
import {
  isFailure,
  loadAddon,
  type RawCall,
  type RawDriver,
  type RawFailure,
  type RawMemory,
} from "./addon.js";
import { type DeviceAllocation, NativeAllocation, NativeMapping } from "./device-memory.js";
import { failureToError, initialiseError, NoGpuError } from "./driver-failure.js";
import { driverHint } from "./driver-hints.js";
import { emulatedHandleMagic } from "./emulated-driver.js";

/** Which library is loaded, and the CUDA version it offers. */
export interface DriverDescription {
  readonly libraryPath: string;
  /** `major.minor`. */
  readonly driverVersion: string;
}

/** Bytes of a device's memory, as the driver counts them. */
export interface DeviceMemoryInfo {
  readonly freeBytes: bigint;
  readonly totalBytes: bigint;
}

const invalidValue = 1;

/** One loaded and initialised driver library. */
export class NativeDriver implements CudaDriver {
  readonly kind: DriverKind;
  readonly description: DriverDescription;
  readonly #raw: RawDriver;
  #devices: readonly CudaDevice[] | null = null;
  #listing: Promise<readonly CudaDevice[]> | null = null;
  #fault: RegistryError | null = null;
  #probeFailure: string | null = null;

  private constructor(raw: RawDriver) {
    this.#raw = raw;
    this.kind = raw.kind;
    this.description = { libraryPath: raw.libraryPath, driverVersion: formatVersion(raw.version) };
  }

  /** Loads a library, without touching a GPU. Rejects with NoGpuError where there is no such library. */
  static async load(libraryPath: string, contextLingerMs: number): Promise<NativeDriver> {
    const raw = await loadAddon().loadDriver(libraryPath, contextLingerMs);
    if (isFailure(raw)) throw failureToError(raw, "cuda");
    return new NativeDriver(raw);
  }

  /**
   * Initialises the driver, which makes no context, and looks at its devices. Rejects with NoGpuError where
   * there are none, else with UNAVAILABLE; it may be called again.
   */
  async initialise(): Promise<void> {
    const count = await this.#raw.initialise();
    if (isFailure(count)) throw initialiseError(count, this.kind);
    if (count === 0) throw new NoGpuError("UNAVAILABLE", "no usable CUDA driver: it lists no device");
    const devices = await this.#raw.devices();
    if (isFailure(devices)) throw initialiseError(devices, this.kind);
    this.#devices = devices;
  }

  get health(): DriverHealth {
    if (this.#fault !== null) return { state: "unusable", reason: this.#fault.message, lost: true };
    return this.#probeFailure === null
      ? { state: "usable" }
      : { state: "unusable", reason: this.#probeFailure };
  }

  /** A lost driver lists nothing, however long the list was before. */
  get knownDevices(): readonly CudaDevice[] | null {
    return this.#fault === null ? this.#devices : null;
  }

  async devices(): Promise<readonly CudaDevice[]> {
    if (this.#fault !== null) throw this.#fault;
    if (this.#devices !== null) return this.#devices;
    this.#listing ??= this.#listDevices();
    return this.#listing;
  }

  open(deviceId: number, handle: IpcMemHandle): Promise<NativeMapping> {
    const isFit = isListed(deviceId, this.knownDevices) && this.#isOwn(handle);
    return isFit ? this.#openNow(deviceId, handle) : this.#openOrRefuse(deviceId, handle);
  }

  async #openOrRefuse(deviceId: number, handle: IpcMemHandle): Promise<NativeMapping> {
    await this.#requireDevice(deviceId);
    if (!this.#isOwn(handle)) throw this.#foreignHandle();
    return this.#openNow(deviceId, handle);
  }

  // No async function: every register passes here, and each would leave the collector a promise and a generator more.
  #openNow(deviceId: number, handle: IpcMemHandle): Promise<NativeMapping> {
    return this.#raw.open(deviceId, handle.exposeBytes()).then(this.#toMapping);
  }

  readonly #toMapping = (raw: RawMemory | RawFailure) => new NativeMapping(this.#checked(raw), this.#checked);

  /** Allocates device memory for other processes to import. Rejects as `open` does. */
  async allocate(deviceId: number, byteSize: bigint): Promise<DeviceAllocation> {
    await this.#requireDevice(deviceId);
    const raw = this.#checked(await this.#raw.allocate(deviceId, byteSize));
    return new NativeAllocation(raw, this.#checked);
  }

  /** A `CUdevice_attribute` by its number, or null if this driver knows none of it. Makes no context. */
  async attribute(deviceId: number, attribute: number): Promise<number | null> {
    await this.#requireDevice(deviceId);
    const value = await this.#raw.attribute(deviceId, attribute);
    // What an older driver answers for an attribute of a newer one.
    if (isFailure(value) && value.failed === "refused" && value.code === invalidValue) return null;
    return this.#checked(value);
  }

  /** Free and total memory of a device. Needs a context on it, so it costs GPU memory itself for a while. */
  async memoryInfo(deviceId: number): Promise<DeviceMemoryInfo> {
    await this.#requireDevice(deviceId);
    return this.#checked(await this.#raw.memoryInfo(deviceId));
  }

  async freeBytes(deviceId: number): Promise<bigint | null> {
    await this.#requireDevice(deviceId);
    return this.#checked(await this.#raw.freeBytes(deviceId));
  }

  /**
   * Asks the driver about every device, which needs no context, and about the memory of those in `inUse`, whose
   * contexts there are. Rejects as `open` does; the outcome shows in `health` until the next probe.
   */
  async probe(inUse: readonly number[]): Promise<void> {
    try {
      this.#checked(await this.#raw.devices());
      for (const deviceId of inUse) this.#checked(await this.#raw.memoryInfo(deviceId));
      this.#probeFailure = null;
    } catch (error) {
      // A driver with more to do than it takes on is busy, not broken.
      const busy = error instanceof RegistryError && error.code === "RESOURCE_EXHAUSTED";
      if (!busy && error instanceof Error) this.#probeFailure = error.message;
      throw error;
    }
  }

  /** The calls that the driver has not answered yet. */
  runningCalls(): readonly RawCall[] {
    return this.#raw.runningCalls();
  }

  async #listDevices(): Promise<readonly CudaDevice[]> {
    try {
      this.#devices = this.#checked(await this.#raw.devices());
      return this.#devices;
    } finally {
      this.#listing = null;
    }
  }

  readonly #checked = <T>(result: T | RawFailure): T => {
    if (!isFailure(result)) return result;
    const error = failureToError(result, this.kind);
    if (error instanceof RegistryError && isStickyResult(result.code)) this.#fault ??= error;
    throw error;
  };

  async #requireDevice(deviceId: number): Promise<void> {
    if (isListed(deviceId, await this.devices())) return;
    throw new DriverError("cuDeviceGet", {
      cudaError: "CUDA_ERROR_INVALID_DEVICE",
      cudaCode: 101,
      hint: driverHint(this.kind, "cuDeviceGet", 101),
    });
  }

  #isOwn(handle: IpcMemHandle): boolean {
    return handle.exposeKey().startsWith(emulatedHandleMagic) === (this.kind === "emulated");
  }

  // A driver given the other kind's handle would answer "invalid" at best, and no hint could be right.
  #foreignHandle(): DriverError {
    return new DriverError("cuIpcOpenMemHandle", {
      cudaError: "CUDA_ERROR_INVALID_VALUE",
      cudaCode: 1,
      hint:
        this.kind === "emulated"
          ? "the handle is not from the emulated driver, which this service uses: it is corrupt, or its exporter uses a real GPU"
          : "the handle is from the emulated driver, and this service uses a real GPU: run the exporter on NVIDIA's driver",
    });
  }
}

function isListed(deviceId: number, devices: readonly CudaDevice[] | null): boolean {
  return devices?.some(({ ordinal }) => ordinal === deviceId) ?? false;
}

function formatVersion(version: number): string {
  return `${Math.trunc(version / 1000)}.${Math.trunc((version % 1000) / 10)}`;
}
