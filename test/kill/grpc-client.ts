import { fileURLToPath } from "node:url";
import {
  type Client,
  type ClientReadableStream,
  credentials,
  loadPackageDefinition,
  Metadata,
  type ServiceError,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import type { Caller } from "./outcome.js";

type Answer = { readonly generation?: string };
type Method = (
  request: object,
  metadata: Metadata,
  done: (error: ServiceError | null, answer: Answer) => void,
) => void;

/** A client made of a .proto file, with none of our codecs. */
export type UnaryClient = Client & Record<string, Method>;
type RegistryClient = UnaryClient & {
  Hold(request: object, metadata: Metadata): ClientReadableStream<unknown>;
  Watch(request: object, metadata: Metadata): ClientReadableStream<unknown>;
};
type ClientClass<Made> = new (address: string, how: object, options: object) => Made;

const definition = loadSync(["inference/grpc_service.proto", "cudashm/v1/registry.proto"], {
  includeDirs: [fileURLToPath(new URL("../../proto", import.meta.url))],
  keepCase: true,
  longs: String,
  enums: String,
});
const { inference, cudashm } = loadPackageDefinition(definition) as unknown as {
  inference: { GRPCInferenceService: ClientClass<UnaryClient> };
  cudashm: { v1: { Registry: ClientClass<RegistryClient> } };
};

// Each client a connection of its own: what one test cuts must not be another's.
const options = { "grpc.use_local_subchannel_pool": 1 };

export function tritonClient(address: string): UnaryClient {
  return new inference.GRPCInferenceService(address, credentials.createInsecure(), options);
}

export function registryClient(address: string): RegistryClient {
  return new cudashm.v1.Registry(address, credentials.createInsecure(), options);
}

/** The metadata that a caller's calls carry. */
export function metadataOf(caller: Caller): Metadata {
  const metadata = new Metadata();
  if (caller.token !== null) metadata.set("authorization", `Bearer ${caller.token}`);
  if (caller.session !== null) metadata.set("cudashm-session", caller.session.secret);
  return metadata;
}
