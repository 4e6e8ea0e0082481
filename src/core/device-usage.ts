import type { CudaDevice } from "./driver.js";

/** A device, and what of it this registry holds. */
export interface DeviceUsage extends CudaDevice {
  /** Bytes nobody has allocated; null while nothing is held there, since to ask would itself take memory. */
  readonly freeBytes: bigint | null;
  /** Bytes of the allocations mapped here, shared ones counted once. */
  readonly mappedBytes: bigint;
  readonly regions: number;
}
