import { credentials } from "@grpc/grpc-js";
import {
  type CudaSharedMemoryStatusResponse,
  GRPCInferenceServiceClient,
} from "../grpc/gen/inference/grpc_service.js";
import type { RegisterBody } from "./exporter-process.js";

/** A region as both faces tell it. */
export interface ListedRegion {
  readonly name: string;
  readonly device_id: number;
  readonly byte_size: number;
}

/** The HTTP face as any client uses it. Every call rejects with the service's text unless it answers 200. */
export function httpClient(url: string) {
  const call = async (method: string, path: string, body?: string | Uint8Array): Promise<Buffer> => {
    const response = await fetch(url + path, { method, ...(body !== undefined && { body }) });
    const bytes = Buffer.from(await response.arrayBuffer());
    if (response.status !== 200) throw new Error(`${method} ${path}: ${response.status} ${bytes}`);
    return bytes;
  };
  const json = async <Answer>(path: string) => JSON.parse(String(await call("GET", path))) as Answer;
  const contents = (name: string, offset: number, byteSize: number) =>
    `/v1/regions/${encodeURIComponent(name)}/contents?offset=${offset}&byte_size=${byteSize}`;
  const region = (name: string) => `/v2/cudasharedmemory/region/${encodeURIComponent(name)}`;
  return {
    metadata: () => json<{ cuda_driver: string }>("/v2"),
    register: (name: string, body: string) => call("POST", `${region(name)}/register`, body),
    unregister: (name: string) => call("POST", `${region(name)}/unregister`),
    status: () => json<ListedRegion[]>("/v2/cudasharedmemory/status"),
    read: (name: string, offset: number, byteSize: number) => call("GET", contents(name, offset, byteSize)),
    write: (name: string, offset: number, bytes: Uint8Array) =>
      call("PUT", contents(name, offset, bytes.byteLength), bytes),
  };
}

/** The gRPC face as any client uses it. Every call rejects with gRPC's error. */
export function grpcClient(address: string) {
  const client = new GRPCInferenceServiceClient(address, credentials.createInsecure());
  const answer = <Response>(call: (done: (error: Error | null, response: Response) => void) => unknown) =>
    new Promise<Response>((resolve, reject) => {
      call((error, response) => (error === null ? resolve(response) : reject(error)));
    });
  return {
    register: (name: string, body: RegisterBody) => {
      const rawHandle = Buffer.from(body.raw_handle.b64, "base64");
      const [deviceId, byteSize] = [BigInt(body.device_id), BigInt(body.byte_size)];
      return answer((done) => client.cudaSharedMemoryRegister({ name, rawHandle, deviceId, byteSize }, done));
    },
    unregister: (name: string) => answer((done) => client.cudaSharedMemoryUnregister({ name }, done)),
    status: async (): Promise<ListedRegion[]> => {
      const { regions } = await answer<CudaSharedMemoryStatusResponse>((done) =>
        client.cudaSharedMemoryStatus({ name: "" }, done),
      );
      const listed = [...regions.values()].map((region) => ({
        name: region.name,
        device_id: Number(region.deviceId),
        byte_size: Number(region.byteSize),
      }));
      return listed.sort((a, b) => (a.name < b.name ? -1 : 1));
    },
    close: () => client.close(),
  };
}
