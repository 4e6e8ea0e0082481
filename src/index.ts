// The package's main export. Only this file and the index.ts of http, grpc and client re-export.
export type { ApiCategory } from "./core/api-category.js";
export type { RegistryLimits } from "./core/capacity.js";
export {
  type CudaDevice,
  type CudaDriver,
  type DeviceMapping,
  DriverError,
  type DriverHealth,
  type DriverKind,
} from "./core/driver.js";
export { type DriverRefusal, type ErrorCode, RegistryError } from "./core/errors.js";
export { Gate, type GateOptions } from "./core/gate.js";
export { IpcMemHandle, ipcMemHandleBytes } from "./core/handle.js";
export { InFlight } from "./core/in-flight.js";
export { Principals } from "./core/principals.js";
export type {
  CallContext,
  Protocol,
  RegionPin,
  RegionState,
  RegionStatus,
  RegionWindow,
  RegisterRequest,
  RegistryChange,
  RegistryObserver,
} from "./core/region.js";
export { maxRegionNameBytes } from "./core/region-name.js";
export { RegionRegistry, type RegistryOptions } from "./core/registry.js";
export { type HeaderSource, type Restriction, Restrictions } from "./core/restrictions.js";
export {
  createCudaDriver,
  type DeviceAllocation,
  type DriverOptions,
  type SelectedDriver,
} from "./native/driver-selection.js";
