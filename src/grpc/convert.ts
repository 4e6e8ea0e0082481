import type { EncodableRegion, RegionEncoding } from "../core/encoded-regions.js";
import { IpcMemHandle, ipcMemHandleBytes } from "../core/handle.js";
import { invalidArguments } from "../core/refusals.js";
import type { RegisterRequest } from "../core/region.js";
import { regionNameProblem } from "../core/region-name.js";
import {
  type CudaSharedMemoryRegisterRequest,
  CudaSharedMemoryStatusResponse,
} from "./gen/inference/grpc_service.js";
import { encodeMessage } from "./wire.js";

/** Throws INVALID_ARGUMENT if `raw_handle` is no handle; the registry checks the rest. */
export function registerRequestFromWire(message: CudaSharedMemoryRegisterRequest): RegisterRequest {
  const { name, rawHandle, deviceId, byteSize } = message;
  return { name, handle: handleFromWire(name, rawHandle), deviceId, byteSize };
}

/** The handle to register under `name`. Throws INVALID_ARGUMENT if it is none. */
export function handleFromWire(name: string, rawHandle: Buffer): IpcMemHandle {
  if (rawHandle.length === ipcMemHandleBytes) return new IpcMemHandle(rawHandle);
  throw invalidArguments(name, regionNameProblem(name) ?? handleProblem(rawHandle));
}

function handleProblem(rawHandle: Buffer): string {
  const expected = `raw_handle must be the ${ipcMemHandleBytes} bytes of a cudaIpcMemHandle_t`;
  return readsAsBase64(rawHandle)
    ? `${expected}, got their ${rawHandle.length} characters of base64: decode them before sending`
    : `${expected}, got ${rawHandle.length}`;
}

function readsAsBase64(rawHandle: Buffer): boolean {
  return /^[A-Za-z0-9+/]{86}(==)?$/.test(rawHandle.toString("latin1"));
}

/** The encoded `CudaSharedMemoryStatusResponse` for `regions`. */
export function encodeStatuses(regions: readonly EncodableRegion[]): Buffer<ArrayBuffer> {
  const byName = new Map(
    regions.map(({ name, deviceId, byteSize }) => [name, { name, deviceId: BigInt(deviceId), byteSize }]),
  );
  return encodeMessage(CudaSharedMemoryStatusResponse, { regions: byName });
}

/** The same in parts: messages one after the other are one message with the regions of all. */
export const statusMessage: RegionEncoding = { encode: encodeStatuses, join: Buffer.concat };
