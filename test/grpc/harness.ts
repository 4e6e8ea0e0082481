import { fileURLToPath } from "node:url";
import {
  type CallOptions,
  Client,
  credentials,
  type GrpcObject,
  loadPackageDefinition,
  type Metadata,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { onTestFinished } from "vitest";
import type { FaceContext, Fault, Readiness } from "../../src/core/face-context.js";
import type { Gate } from "../../src/core/gate.js";
import { RegionRegistry, type RegistryOptions } from "../../src/core/registry.js";
import { createRequestIds } from "../../src/core/request-ids.js";
import { type GrpcListenOptions, type GrpcServer, listenGrpc } from "../../src/grpc/server.js";
import { FakeDriver } from "../helpers/fake-driver.js";
import { told } from "../helpers/secrets.js";

const allocationBytes = 4096;

/** A face on a registry of its own, with everything that a test may want to turn. */
export interface TestFace {
  readonly context: FaceContext;
  readonly registry: RegionRegistry;
  readonly driver: FakeDriver;
  readonly faults: readonly Fault[];
  readonly shutdown: AbortController;
  /** A register of 64 of 4,096 bytes that there are, which succeeds unless changed. */
  readonly goodRegister: {
    readonly name: string;
    readonly raw_handle: Buffer;
    readonly device_id: string;
    readonly byte_size: string;
  };
  setReadiness(readiness: Readiness): void;
}

interface TestFaceOptions extends Pick<FaceContext, "observeOperation" | "traceOperation"> {
  readonly allowClientShm?: boolean;
  readonly gate?: Gate;
  readonly registry?: Omit<RegistryOptions, "driver">;
}

export function createTestFace(options: TestFaceOptions = {}): TestFace {
  const { allowClientShm = true, gate, registry: registryOptions, ...observers } = options;
  const driver = new FakeDriver();
  const registry = new RegionRegistry({ ...registryOptions, driver });
  const shutdown = new AbortController();
  const faults: Fault[] = [];
  let readiness: Readiness = "ready";
  const context: FaceContext = {
    registry,
    info: {
      name: "cudashm",
      version: "1.2.3",
      extensions: ["cuda_shared_memory"],
      instanceId: "test",
      epoch: 1n,
    },
    readiness: () => readiness,
    cudaDriver: () => "emulated",
    allowClientShm,
    gates: { grpc: gate },
    shutdown: shutdown.signal,
    nextRequestId: createRequestIds(),
    reportFault: (fault) => {
      told(fault);
      faults.push(fault);
    },
    ...observers,
  };
  return {
    context,
    registry,
    driver,
    faults,
    shutdown,
    goodRegister: {
      name: "r",
      raw_handle: Buffer.from(driver.allocate(allocationBytes).handle.exposeBytes()),
      device_id: "0",
      byte_size: "64",
    },
    setReadiness: (next) => {
      readiness = next;
    },
  };
}

/** The face on a free port, closed by force when the test ends. */
export async function startServer(
  face: TestFace,
  options: Partial<GrpcListenOptions> = {},
): Promise<GrpcServer> {
  const server = await listenGrpc(face.context, { host: "127.0.0.1", port: 0, ...options });
  onTestFinished(() => server.close(AbortSignal.abort()));
  return server;
}

/** What a call came to, as a client sees it. */
export interface Answer {
  /** Name of the status. */
  readonly code: string;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the other decoder makes of it.
  readonly response: any;
  readonly trailers: Metadata;
}

export type Call = (method: string, request?: object, options?: CallOptions) => Promise<Answer>;

const protoFolder = fileURLToPath(new URL("../../proto/", import.meta.url));
const protoFiles = [
  "inference/grpc_service.proto",
  "grpc/health/v1/health.proto",
  "cudashm/v1/registry.proto",
];

/** Calls one service with proto-loader: a codec that shares nothing with the server's. */
export function createCaller(address: string, service = "inference.GRPCInferenceService"): Call {
  const client = createClient(address, service);
  return (method, request = {}, options = {}) => {
    // biome-ignore lint/suspicious/noExplicitAny: grpc-js types dynamic clients no closer.
    const send = (client as any)[method].bind(client);
    return answer((callback) => send(request, options, callback));
  };
}

/** A dynamic client of a service of proto/, closed when the test ends. */
export function createClient(address: string, service: string): Client {
  const definition = loadSync(protoFiles, {
    includeDirs: [protoFolder],
    keepCase: true,
    longs: String,
    enums: String,
    defaults: true,
    oneofs: true,
  });
  const ServiceClient = service
    .split(".")
    .reduce<GrpcObject>((scope, name) => scope[name] as GrpcObject, loadPackageDefinition(definition));
  const client = new (ServiceClient as unknown as typeof Client)(address, credentials.createInsecure());
  onTestFinished(() => client.close());
  return client;
}

/** Sends bytes as they are to a method of the inference service. */
export function createRawCaller(address: string): (method: string, bytes: Uint8Array) => Promise<Answer> {
  const client = new Client(address, credentials.createInsecure());
  onTestFinished(() => client.close());
  const asIs = (bytes: Buffer) => bytes;
  return (method, bytes) =>
    answer((callback) =>
      client.makeUnaryRequest(
        `/inference.GRPCInferenceService/${method}`,
        asIs,
        asIs,
        Buffer.from(bytes),
        callback,
      ),
    );
}

interface RunningCall {
  on(event: "status", listener: (status: { metadata: Metadata }) => void): unknown;
}

function answer(
  send: (callback: (error: ServiceError | null, response?: unknown) => void) => RunningCall,
): Promise<Answer> {
  return new Promise((resolve) => {
    let outcome: Omit<Answer, "trailers">;
    const call = send((error, response) => {
      const code = error === null ? "OK" : (status[error.code] ?? String(error.code));
      outcome = { code, text: error?.details ?? "", response };
      told(error ?? response);
    });
    // Comes just before or just after the callback.
    call.on("status", ({ metadata }) => setImmediate(() => resolve({ ...outcome, trailers: metadata })));
  });
}

export function addressOf(server: GrpcServer): string {
  return `127.0.0.1:${portOf(server)}`;
}

export function portOf({ address }: GrpcServer): number {
  return address?.port ?? 0;
}
