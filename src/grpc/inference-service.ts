import type { Server } from "@grpc/grpc-js";
import { EncodedRegions } from "../core/encoded-regions.js";
import { RegistryError } from "../core/errors.js";
import { clientShmDisabledText, type FaceContext } from "../core/face-context.js";
import { invalidArguments, noSuchSystemRegion, systemSharedMemoryUnsupported } from "../core/refusals.js";
import { assertRegionName } from "../core/region-name.js";
import { encodeStatuses, registerRequestFromWire, statusMessage } from "./convert.js";
import * as wire from "./gen/inference/grpc_service.js";
import type { OpenCalls } from "./open-calls.js";
import { addUnaryMethod, type UnaryMethod } from "./unary-call.js";
import { encodeMessage } from "./wire.js";

/** Full name of Triton's service. */
export const inferenceServiceName = "inference.GRPCInferenceService";

// Every empty message is encoded as no bytes at all.
const emptyMessage = Buffer.alloc(0);
const toEmptyMessage = () => emptyMessage;

const methods = wire.GRPCInferenceServiceService;

/** Adds the calls of Triton's service that this one has; grpc-js answers the others with UNIMPLEMENTED. */
export function addInferenceService(server: Server, face: FaceContext, openCalls: OpenCalls): void {
  const add = <Request>(method: UnaryMethod<Request>) => addUnaryMethod(server, method, face, openCalls);
  addServerMethods(add, face);
  addSystemSharedMemoryMethods(add);
  addCudaSharedMemoryMethods(add, face);
}

type AddMethod = <Request>(method: UnaryMethod<Request>) => void;

function addServerMethods(add: AddMethod, face: FaceContext): void {
  const metadata = encodeMessage(wire.ServerMetadataResponse, {
    name: face.info.name,
    version: face.info.version,
    extensions: [...face.info.extensions],
  });
  add({
    path: methods.serverLive.path,
    request: wire.ServerLiveRequest,
    handle: () => encodeMessage(wire.ServerLiveResponse, { live: face.isLive?.() !== false }),
  });
  add({
    path: methods.serverReady.path,
    request: wire.ServerReadyRequest,
    handle: () => encodeMessage(wire.ServerReadyResponse, { ready: face.readiness() === "ready" }),
  });
  add({ path: methods.serverMetadata.path, request: wire.ServerMetadataRequest, handle: () => metadata });
}

function addSystemSharedMemoryMethods(add: AddMethod): void {
  add({
    path: methods.systemSharedMemoryStatus.path,
    request: wire.SystemSharedMemoryStatusRequest,
    handle: ({ name }) => {
      if (name === "") return emptyMessage;
      throw noSuchSystemRegion(name);
    },
  });
  add({
    path: methods.systemSharedMemoryRegister.path,
    request: wire.SystemSharedMemoryRegisterRequest,
    handle: () => {
      throw systemSharedMemoryUnsupported();
    },
  });
  add({
    path: methods.systemSharedMemoryUnregister.path,
    request: wire.SystemSharedMemoryUnregisterRequest,
    handle: () => emptyMessage,
  });
}

function addCudaSharedMemoryMethods(add: AddMethod, face: FaceContext): void {
  const { registry } = face;
  const statuses = new EncodedRegions(registry, statusMessage);

  add({
    path: methods.cudaSharedMemoryStatus.path,
    request: wire.CudaSharedMemoryStatusRequest,
    handle: ({ name }, call) => {
      if (name !== "") {
        assertRegionName(name);
        return encodeStatuses([registry.status(name, call)]);
      }
      return statuses.visibleTo(call);
    },
  });
  add({
    path: methods.cudaSharedMemoryRegister.path,
    request: wire.CudaSharedMemoryRegisterRequest,
    refuse: (problem) => invalidArguments("", problem),
    handle: (request, call) => {
      if (!face.allowClientShm) throw new RegistryError("UNIMPLEMENTED", clientShmDisabledText);
      return registry.register(registerRequestFromWire(request), call).then(toEmptyMessage);
    },
  });
  add({
    path: methods.cudaSharedMemoryUnregister.path,
    request: wire.CudaSharedMemoryUnregisterRequest,
    handle: ({ name }, call) => {
      if (name === "") return registry.unregisterAll(call).then(toEmptyMessage);
      assertRegionName(name);
      return registry.unregister(name, call).then(toEmptyMessage);
    },
  });
}
