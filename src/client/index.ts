// What `cudashm/client` exports. Nothing in this folder imports anything outside it, so that it runs in browsers.
export type { CallOptions } from "./call-options.js";
export {
  type CudaSharedMemoryClient,
  type CudaSharedMemoryClientOptions,
  createCudaSharedMemoryClient,
  type RegionRegistration,
  type ServiceMetadata,
} from "./client.js";
export { CudaSharedMemoryError, type CudaSharedMemoryErrorCode, EventsEndedError } from "./errors.js";
export type {
  ChangeEvent,
  ChangeKind,
  EventsOptions,
  GapEvent,
  HelloEvent,
  RegistryEvent,
} from "./events.js";
export type { KeepAliveOptions } from "./keep-alive.js";
export type { ChangeReason, Exporter, Region, RegionState } from "./region.js";
export type { RegionWindow } from "./region-window.js";
export type { FullRegistration } from "./registration.js";
export type {
  Checksum,
  RegionFilter,
  RegionPage,
  RegistryClient,
  RenewOptions,
  Unregistered,
  UnregisterOptions,
} from "./registry-client.js";
export type { Device, RefusedAdoption, ServerState } from "./server-state.js";
export type { RegionStatus } from "./wire.js";
