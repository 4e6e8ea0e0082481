import { request as httpRequest } from "node:http";
import { fileURLToPath } from "node:url";
import {
  type Client,
  credentials,
  loadPackageDefinition,
  Metadata,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { told } from "../helpers/secrets.js";

/** The status codes that the parity table uses, in gRPC's words. */
export type ParityCode =
  | "OK"
  | "INVALID_ARGUMENT"
  | "ALREADY_EXISTS"
  | "NOT_FOUND"
  | "PERMISSION_DENIED"
  | "UNAUTHENTICATED"
  | "RESOURCE_EXHAUSTED"
  | "UNAVAILABLE"
  | "UNIMPLEMENTED"
  | "INTERNAL";

/** What a call came to, in words that do not depend on the face. */
export interface Outcome {
  readonly code: ParityCode;
  /** The error's text, empty on success. */
  readonly text: string;
  readonly regions: readonly ListedRegion[];
}

interface ListedRegion {
  readonly name: string;
  /** Digits as they came over the wire, so that nothing can be rounded on the way. */
  readonly deviceId: string;
  readonly byteSize: string;
}

interface Registration {
  readonly name: string;
  readonly handle: Uint8Array;
  readonly deviceId?: bigint;
  readonly byteSize: bigint;
}

/** One door of the service, as a client sees it. */
export interface FaceClient {
  readonly protocol: "http" | "grpc";
  register(registration: Registration): Promise<Outcome>;
  status(name?: string): Promise<Outcome>;
  unregister(name?: string): Promise<Outcome>;
  systemRegister(name: string): Promise<Outcome>;
  systemStatus(name?: string): Promise<Outcome>;
  systemUnregister(name?: string): Promise<Outcome>;
  live(): Promise<boolean>;
  ready(): Promise<boolean>;
  metadata(): Promise<{ name: string; version: string; extensions: readonly string[] }>;
  close(): void;
}

/** The HTTP status that goes with each code: one to one but for ALREADY_EXISTS, a plain 400. */
const httpStatuses: Readonly<Record<ParityCode, number>> = {
  OK: 200,
  INVALID_ARGUMENT: 400,
  ALREADY_EXISTS: 400,
  NOT_FOUND: 404,
  PERMISSION_DENIED: 403,
  UNAUTHENTICATED: 401,
  RESOURCE_EXHAUSTED: 429,
  UNAVAILABLE: 503,
  UNIMPLEMENTED: 501,
  INTERNAL: 500,
};

/** Headers, or metadata, that every call is sent with. */
export type SentHeaders = Readonly<Record<string, string>>;

/** Calls over HTTP with node:http, which sends a path as it is given. */
export function createHttpFaceClient(port: number, headers: SentHeaders = {}): FaceClient {
  const cuda = "/v2/cudasharedmemory";
  const system = "/v2/systemsharedmemory";
  const region = (name?: string) => (name === undefined ? "" : `/region/${encodeURIComponent(name)}`);

  async function call(method: string, path: string, body?: string): Promise<Outcome> {
    const { status: code, text } = await exchange(port, method, path, headers, body);
    return httpOutcome(code, text);
  }

  return {
    protocol: "http",
    register: ({ name, handle, deviceId = 0n, byteSize }) => {
      const b64 = Buffer.from(handle).toString("base64");
      const body = `{"raw_handle":{"b64":"${b64}"},"device_id":${deviceId},"byte_size":${byteSize}}`;
      return call("POST", `${cuda}${region(name)}/register`, body);
    },
    status: (name) => call("GET", `${cuda}${region(name)}/status`),
    unregister: (name) => call("POST", `${cuda}${region(name)}/unregister`),
    systemRegister: (name) =>
      call("POST", `${system}${region(name)}/register`, '{"key":"/k","offset":0,"byte_size":64}'),
    systemStatus: (name) => call("GET", `${system}${region(name)}/status`),
    systemUnregister: (name) => call("POST", `${system}${region(name)}/unregister`),
    live: async () => (await exchange(port, "GET", "/v2/health/live", headers)).status === 200,
    ready: async () => (await exchange(port, "GET", "/v2/health/ready", headers)).status === 200,
    metadata: async () => JSON.parse((await exchange(port, "GET", "/v2", headers)).text),
    close: () => {},
  };
}

/** What an HTTP answer comes to. */
export function httpOutcome(code: number, text: string): Outcome {
  if (code !== 200) return { code: codeOfHttp(code, text), text: errorText(text), regions: [] };
  return { code: "OK", text: "", regions: text === "" ? [] : listedRegions(text) };
}

function exchange(
  port: number,
  method: string,
  path: string,
  headers: SentHeaders,
  body?: string,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, method, path, headers, agent: false };
    const outgoing = httpRequest(options, (answer) => {
      const pieces: Buffer[] = [];
      answer.on("data", (piece: Buffer) => pieces.push(piece));
      answer.on("end", () => {
        const text = Buffer.concat(pieces).toString();
        told(text);
        told(answer.rawHeaders);
        resolve({ status: answer.statusCode ?? 0, text });
      });
      answer.on("error", reject);
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

function codeOfHttp(code: number, text: string): ParityCode {
  if (code === 400) return text.includes("already in manager") ? "ALREADY_EXISTS" : "INVALID_ARGUMENT";
  for (const [name, number] of Object.entries(httpStatuses)) {
    if (number === code) return name as ParityCode;
  }
  throw new Error(`HTTP status ${code} has no place in the parity table: ${text}`);
}

function errorText(body: string): string {
  const error: unknown = JSON.parse(body).error;
  if (typeof error !== "string" || error === "") throw new Error(`an error answer without a text: ${body}`);
  return error;
}

function listedRegions(body: string): ListedRegion[] {
  // Read the digits from the text: JSON.parse would round sizes above 2^53.
  const exact = body.replace(/"(device_id|byte_size)":(\d+)/g, '"$1":"$2"');
  return (JSON.parse(exact) as { name: string; device_id: string; byte_size: string }[]).map((listed) => ({
    name: listed.name,
    deviceId: listed.device_id,
    byteSize: listed.byte_size,
  }));
}

/** What a message answered over gRPC comes to; its 64-bit numbers must be digits. */
export function grpcOutcome(answer: Answer): Outcome {
  const regions = Object.values((answer.regions ?? {}) as Record<string, Record<string, string>>);
  return {
    code: "OK",
    text: "",
    regions: regions
      .map((listed) => ({
        name: String(listed.name),
        deviceId: String(listed.device_id),
        byteSize: String(listed.byte_size),
      }))
      .sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name))),
  };
}

type UnaryCall = (
  request: object,
  metadata: Metadata,
  callback: (error: ServiceError | null, answer: Answer) => void,
) => void;
type Answer = Record<string, unknown>;

/** Calls over gRPC with proto-loader, a decoder that shares nothing with the service's. */
export function createGrpcFaceClient(port: number, headers: SentHeaders = {}): FaceClient {
  const proto = fileURLToPath(new URL("../../proto/inference/grpc_service.proto", import.meta.url));
  const definition = loadSync(proto, { keepCase: true, longs: String, defaults: true });
  const { inference } = loadPackageDefinition(definition) as unknown as {
    inference: { GRPCInferenceService: new (address: string, creds: unknown) => Client };
  };
  const client = new inference.GRPCInferenceService(`127.0.0.1:${port}`, credentials.createInsecure());

  function unary(method: string, request: object): Promise<{ error: ServiceError | null; answer: Answer }> {
    const send = (client as unknown as Record<string, UnaryCall>)[method];
    if (send === undefined) throw new Error(`the service has no call ${method}`);
    const metadata = new Metadata();
    for (const [key, value] of Object.entries(headers)) metadata.set(key, value);
    return new Promise((resolve) => {
      send.call(client, request, metadata, (error, answer) => {
        told(error ?? answer);
        resolve({ error, answer });
      });
    });
  }

  async function call(method: string, request: object): Promise<Outcome> {
    const { error, answer } = await unary(method, request);
    if (error !== null) {
      return { code: status[error.code] as ParityCode, text: error.details, regions: [] };
    }
    return grpcOutcome(answer);
  }

  return {
    protocol: "grpc",
    register: ({ name, handle, deviceId = 0n, byteSize }) =>
      call("CudaSharedMemoryRegister", {
        name,
        raw_handle: handle,
        device_id: String(deviceId),
        byte_size: String(byteSize),
      }),
    status: (name = "") => call("CudaSharedMemoryStatus", { name }),
    unregister: (name = "") => call("CudaSharedMemoryUnregister", { name }),
    systemRegister: (name) =>
      call("SystemSharedMemoryRegister", { name, key: "/k", offset: 0, byte_size: 64 }),
    systemStatus: (name = "") => call("SystemSharedMemoryStatus", { name }),
    systemUnregister: (name = "") => call("SystemSharedMemoryUnregister", { name }),
    live: async () => (await unary("ServerLive", {})).answer.live === true,
    ready: async () => (await unary("ServerReady", {})).answer.ready === true,
    metadata: async () =>
      (await unary("ServerMetadata", {})).answer as {
        name: string;
        version: string;
        extensions: string[];
      },
    close: () => client.close(),
  };
}
