import { randomBytes } from "node:crypto";
import {
  type CudaDevice,
  type CudaDriver,
  type DeviceMapping,
  DriverError,
  type DriverHealth,
} from "../../src/core/driver.js";
import { RegistryError } from "../../src/core/errors.js";
import { IpcMemHandle } from "../../src/core/handle.js";
import { crc32c } from "./crc32c.js";
import { keepPointerSecret, keepSecret } from "./secrets.js";

/** What an exporter would hold: memory of a device and the handle that lets others map it. */
export interface FakeAllocation {
  readonly deviceId: number;
  readonly handle: IpcMemHandle;
  readonly bytes: Uint8Array;
  /** Later opens of the handle are refused; mappings there are keep the memory. */
  free(): void;
}

/** A refusal as the driver words it. */
export function driverError(cudaCode: number, cudaError: string, call = "cuIpcOpenMemHandle"): DriverError {
  return new DriverError(call, { cudaError, cudaCode, hint: `hint for ${cudaCode}` });
}

export interface FakeDriverOptions {
  /** Default 2. */
  readonly deviceCount?: number;
}

/**
 * The driver port on plain memory within this process. Calls settle on the next turn of the microtask queue,
 * unless `beforeOpen`, `beforeClose` or `beforeCopy` is set: what it returns is awaited first, what it throws is
 * the call's refusal.
 */
export class FakeDriver implements CudaDriver {
  readonly kind = "emulated";
  health: DriverHealth = { state: "usable" };
  /** Set to have `devices` reject, as it does where there is no usable driver. */
  devicesError: unknown;
  beforeOpen: ((deviceId: number, handle: IpcMemHandle) => Promise<void> | void) | undefined;
  beforeClose: ((mapping: DeviceMapping) => Promise<void> | void) | undefined;
  beforeCopy: (() => Promise<void> | void) | undefined;
  /** Opens that were asked for, whatever became of them. */
  openCalls = 0;
  /** Opens and closes that succeeded. */
  opens = 0;
  closes = 0;
  closeCalls = 0;
  /** Closes of what was closed already: the port allows them, the core has no need of them. */
  redundantCloses = 0;
  readonly #devices: readonly CudaDevice[];
  readonly #allocations = new Map<string, FakeAllocation>();
  readonly #busy = new Set<string>();

  constructor(options: FakeDriverOptions = {}) {
    this.#devices = Array.from({ length: options.deviceCount ?? 2 }, (_, ordinal) => ({
      ordinal,
      uuid: `GPU-00000000-0000-0000-0000-00000000000${ordinal}`,
      pciBusId: `0000:0${ordinal}:00.0`,
      name: `Fake GPU ${ordinal}`,
      totalBytes: 1n << 33n,
    }));
  }

  /** Mappings opened and not closed. */
  get openMappings(): number {
    return this.opens - this.closes;
  }

  allocate(byteSize: number, deviceId = 0, handle = new IpcMemHandle(randomBytes(64))): FakeAllocation {
    keepSecret("a handle", handle.exposeBytes());
    const key = handle.exposeKey();
    const allocation: FakeAllocation = {
      deviceId,
      handle,
      bytes: new Uint8Array(byteSize),
      free: () => this.#allocations.delete(key),
    };
    this.#allocations.set(key, allocation);
    return allocation;
  }

  async devices(): Promise<readonly CudaDevice[]> {
    if (this.devicesError !== undefined) throw this.devicesError;
    return this.#devices;
  }

  async open(deviceId: number, handle: IpcMemHandle): Promise<DeviceMapping> {
    this.openCalls++;
    return this.#alone(`${deviceId}/${handle.exposeKey()}`, async () => {
      await this.beforeOpen?.(deviceId, handle);
      const allocation = this.#allocations.get(handle.exposeKey());
      if (allocation === undefined) throw driverError(1, "CUDA_ERROR_INVALID_VALUE");
      this.opens++;
      return this.#map(deviceId, handle, allocation.bytes);
    });
  }

  #map(deviceId: number, handle: IpcMemHandle, bytes: Uint8Array): DeviceMapping {
    let closed = false;
    const copy = async <T>(offset: bigint, length: bigint, run: (start: number) => T): Promise<T> => {
      if (offset < 0n || length < 0n || offset + length > bytes.byteLength) {
        throw new RegistryError("OUT_OF_RANGE", "beyond the allocation");
      }
      if (closed) throw new RegistryError("FAILED_PRECONDITION", "the mapping is closed");
      await this.beforeCopy?.();
      // The core closes nothing while a copy runs, so the fake need not wait for one as the addon does.
      if (closed) throw new Error("the fake's memory was used after its close");
      return run(Number(offset));
    };
    const close = async () => {
      this.closeCalls++;
      if (closed) {
        this.redundantCloses++;
        return;
      }
      await this.#alone(`${deviceId}/${handle.exposeKey()}`, async () => {
        await this.beforeClose?.(mapping);
        closed = true;
        this.closes++;
      });
    };
    const devicePointer = 0x7f00_0000_0000n + BigInt(this.opens) * 0x200_000n;
    keepPointerSecret(devicePointer);
    const mapping: DeviceMapping = {
      deviceId,
      devicePointer,
      byteSize: BigInt(bytes.byteLength),
      read: (offset, into) =>
        copy(offset, BigInt(into.byteLength), (start) =>
          into.set(bytes.subarray(start, start + into.byteLength)),
        ),
      write: (offset, from) => copy(offset, BigInt(from.byteLength), (start) => bytes.set(from, start)),
      checksum: (offset, byteSize, seed) =>
        copy(offset, byteSize, (start) => crc32c(bytes.subarray(start, start + Number(byteSize)), seed)),
      close,
      [Symbol.asyncDispose]: close,
    };
    return mapping;
  }

  /** The core has to see to it that one (device, handle) is opened or closed by one call at a time. */
  async #alone<T>(key: string, run: () => Promise<T>): Promise<T> {
    if (this.#busy.has(key)) throw new Error("the fake got two calls at once for one device and handle");
    this.#busy.add(key);
    try {
      return await run();
    } finally {
      this.#busy.delete(key);
    }
  }
}
