// What `cudashm/client` exports. Nothing in this folder imports anything outside it, so that it runs in browsers.
export {
  type CallOptions,
  type CudaSharedMemoryClient,
  type CudaSharedMemoryClientOptions,
  createCudaSharedMemoryClient,
  type RegionRegistration,
  type RegionWindow,
  type ServiceMetadata,
} from "./client.js";
export { CudaSharedMemoryError, type CudaSharedMemoryErrorCode } from "./errors.js";
export type { RegionStatus } from "./wire.js";
