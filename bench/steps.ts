import {
  CudaSharedMemoryRegisterRequest,
  CudaSharedMemoryStatusRequest,
  CudaSharedMemoryUnregisterRequest,
  GRPCInferenceServiceService as inference,
} from "../dist/grpc/gen/inference/grpc_service.js";
import type { GrpcStep, HttpStep } from "./load/jobs.js";
import type { ExportedMemory } from "./memory.js";
import { cudaPath } from "./servers/http-api.js";

type WithoutCount<Step> = Omit<Step, "counts">;

/** Register and unregister of `name` over HTTP, on the allocation of that index. */
export function httpPair(name: string, { bodies }: ExportedMemory, index: number): WithoutCount<HttpStep>[] {
  const path = `${cudaPath}/region/${name}`;
  return [
    { method: "POST", path: `${path}/register`, body: bodies[index] ?? "" },
    { method: "POST", path: `${path}/unregister` },
  ];
}

/** Status of one region, or of all. */
export function httpStatus(name?: string): HttpStep {
  const path = name === undefined ? `${cudaPath}/status` : `${cudaPath}/region/${name}/status`;
  return { method: "GET", path };
}

/** As httpPair, over gRPC. */
export function grpcPair(name: string, memory: ExportedMemory, index: number): WithoutCount<GrpcStep>[] {
  const register = CudaSharedMemoryRegisterRequest.encode({
    name,
    rawHandle: memory.handles[index] ?? Buffer.alloc(0),
    deviceId: 0n,
    byteSize: BigInt(memory.byteSize),
  });
  const unregister = CudaSharedMemoryUnregisterRequest.encode({ name });
  return [
    unaryCall(inference.cudaSharedMemoryRegister, register.finish()),
    unaryCall(inference.cudaSharedMemoryUnregister, unregister.finish()),
  ];
}

/** As httpStatus, over gRPC. */
export function grpcStatus(name = ""): GrpcStep {
  return unaryCall(inference.cudaSharedMemoryStatus, CudaSharedMemoryStatusRequest.encode({ name }).finish());
}

/** A call that sends one message. */
export function unaryCall({ path }: { readonly path: string }, message: Uint8Array): GrpcStep {
  return { path, messages: [{ b64: Buffer.from(message).toString("base64"), times: 1 }] };
}
