// Bare grpc-js with the product's own messages: no check, no state, no trailers.
import {
  Server,
  ServerCredentials,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
} from "@grpc/grpc-js";
import {
  type ReadContentsRequest,
  type ReadContentsResponse,
  RegistryService,
  type WriteContentsRequest,
  type WriteContentsResponse,
} from "../../dist/grpc/gen/cudashm/v1/registry.js";
import {
  type CudaSharedMemoryRegisterRequest,
  type CudaSharedMemoryRegisterResponse,
  type CudaSharedMemoryStatusRequest,
  type CudaSharedMemoryStatusResponse,
  type CudaSharedMemoryUnregisterRequest,
  type CudaSharedMemoryUnregisterResponse,
  GRPCInferenceServiceService,
} from "../../dist/grpc/gen/inference/grpc_service.js";
import { readServerArguments, regionName } from "./arguments.js";
import { createStore } from "./store.js";

/** As large as the product's messages may be. */
const pieceBytes = 256 * 1024;

const options = readServerArguments();
const store = await createStore(options.store);
const names = Array.from({ length: options.regions }, (_, index) => regionName(index));
const all: CudaSharedMemoryStatusResponse = { regions: new Map(names.map((name) => [name, statusOf(name)])) };
const piece = Buffer.alloc(pieceBytes, 1);

const inference = GRPCInferenceServiceService;
const { readContents, writeContents } = RegistryService;
const { cudaSharedMemoryRegister, cudaSharedMemoryUnregister, cudaSharedMemoryStatus } = inference;

const server = new Server({ "grpc.enable_channelz": 0 });
server.addService(
  {
    cudaSharedMemoryRegister,
    cudaSharedMemoryUnregister,
    cudaSharedMemoryStatus,
    readContents,
    writeContents,
  },
  {
    cudaSharedMemoryRegister(
      { request }: ServerUnaryCall<CudaSharedMemoryRegisterRequest, CudaSharedMemoryRegisterResponse>,
      callback: sendUnaryData<CudaSharedMemoryRegisterResponse>,
    ): void {
      const { name, rawHandle, deviceId } = request;
      store.register(name, rawHandle, Number(deviceId)).then(() => callback(null, {}), callback);
    },

    cudaSharedMemoryUnregister(
      { request }: ServerUnaryCall<CudaSharedMemoryUnregisterRequest, CudaSharedMemoryUnregisterResponse>,
      callback: sendUnaryData<CudaSharedMemoryUnregisterResponse>,
    ): void {
      store.unregister(request.name).then(() => callback(null, {}), callback);
    },

    cudaSharedMemoryStatus(
      { request }: ServerUnaryCall<CudaSharedMemoryStatusRequest, CudaSharedMemoryStatusResponse>,
      callback: sendUnaryData<CudaSharedMemoryStatusResponse>,
    ): void {
      const { name } = request;
      callback(null, name === "" ? all : { regions: new Map([[name, statusOf(name)]]) });
    },

    readContents(call: ServerWritableStream<ReadContentsRequest, ReadContentsResponse>): void {
      let left = Number(call.request.byteSize);
      const send = () => {
        while (left > 0) {
          const data = left < pieceBytes ? piece.subarray(0, left) : piece;
          left -= data.length;
          if (!call.write({ data })) return void call.once("drain", send);
        }
        call.end();
      };
      send();
    },

    writeContents(
      call: ServerReadableStream<WriteContentsRequest, WriteContentsResponse>,
      callback: sendUnaryData<WriteContentsResponse>,
    ): void {
      let bytesWritten = 0n;
      call.on("data", ({ part }: WriteContentsRequest) => {
        if (part?.$case === "data") bytesWritten += BigInt(part.value.length);
      });
      call.on("end", () => callback(null, { bytesWritten }));
    },
  },
);
server.bindAsync(`127.0.0.1:${options.port}`, ServerCredentials.createInsecure(), (error) => {
  if (error !== null) throw error;
});

function statusOf(name: string) {
  return { name, deviceId: 0n, byteSize: 4096n };
}
