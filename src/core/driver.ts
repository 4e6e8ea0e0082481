import type { DriverRefusal } from "./errors.js";
import type { IpcMemHandle } from "./handle.js";

/** NVIDIA's own `libcuda.so.1`, or ours on host memory. */
export type DriverKind = "cuda" | "emulated";

/** One GPU as the driver lists it. */
export interface CudaDevice {
  /** This process's number for the device; clients' `device_id` is read as this. */
  readonly ordinal: number;
  /** `GPU-` or `MIG-` and the UUID, as nvidia-smi prints it. */
  readonly uuid: string;
  /** `domain:bus:device.function`, such as `0000:3b:00.0`. */
  readonly pciBusId: string;
  readonly name: string;
  /** Memory of the device in bytes. */
  readonly totalBytes: bigint;
}

/**
 * One import of an IPC handle into this process, from an open to its close. Offsets and sizes are bytes from
 * the start of the allocation. Copies are synchronised before they resolve and never run on the JS thread; they
 * reject with OUT_OF_RANGE beyond the allocation, with FAILED_PRECONDITION after a close, and else as below.
 */
export interface DeviceMapping extends AsyncDisposable {
  readonly deviceId: number;
  /** Never shown to a client and never logged. */
  readonly devicePointer: bigint;
  /** The size the driver reports for the whole allocation, in bytes. */
  readonly byteSize: bigint;
  /** Copies `into.byteLength` bytes at `offset` out of device memory. Rejects with DriverError. */
  read(offset: bigint, into: Uint8Array): Promise<void>;
  /** Copies `from` into device memory at `offset`. Rejects with DriverError. */
  write(offset: bigint, from: Uint8Array): Promise<void>;
  /**
   * CRC-32C of `byteSize` bytes at `offset`. `seed` is that of the bytes before, so that a checksum can be made in
   * parts; 0, that of no bytes, unless given. Refused as copies are. Rejects with DriverError.
   */
  checksum(offset: bigint, byteSize: bigint, seed?: number): Promise<number>;
  /** Ends the import. Rejects with DriverError, and may then be called again; once closed, it does nothing. */
  close(): Promise<void>;
}

/**
 * Whether the driver can serve now; `reason` is a sentence for the client and the operator, `lost` says that only
 * a new process helps.
 */
export type DriverHealth =
  | { readonly state: "starting" }
  | { readonly state: "usable" }
  | { readonly state: "unusable"; readonly reason: string; readonly lost?: true };

/**
 * The port to CUDA. Implemented by the native addon (src/native) and, in tests of the core, by a fake.
 *
 * `devices` and `open` reject with {@link DriverError} when the driver refuses, and with a RegistryError of
 * code UNAVAILABLE when there is no usable driver, or RESOURCE_EXHAUSTED when the device's queue is full.
 * A close is never refused for want of room.
 */
export interface CudaDriver {
  /** null until a library was chosen. */
  readonly kind: DriverKind | null;
  readonly health: DriverHealth;
  devices(): Promise<readonly CudaDevice[]>;
  /** What `devices` would resolve with, where that is known already; else null. */
  readonly knownDevices?: readonly CudaDevice[] | null;
  open(deviceId: number, handle: IpcMemHandle): Promise<DeviceMapping>;
  /**
   * Bytes free on the device, or null if this process has no context there: asking makes none, and keeps none that
   * is about to go. Rejects as `open` does.
   */
  freeBytes?(deviceId: number): Promise<bigint | null>;
}

/** The driver refused a call. The message reads `<call>: <cudaError> (<cudaCode>): <hint>`. */
export class DriverError extends Error implements DriverRefusal {
  override readonly name = "DriverError";
  /** The driver function that refused, such as `cuIpcOpenMemHandle`. */
  readonly call: string;
  readonly cudaError: string;
  readonly cudaCode: number;
  readonly hint: string;

  constructor(call: string, refusal: DriverRefusal) {
    super(`${call}: ${refusal.cudaError} (${refusal.cudaCode}): ${refusal.hint}`);
    this.call = call;
    this.cudaError = refusal.cudaError;
    this.cudaCode = refusal.cudaCode;
    this.hint = refusal.hint;
  }
}
