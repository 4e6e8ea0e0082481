import type { ErrorCode } from "../core/errors.js";
import { cudaPath } from "./cuda-shared-memory.js";
import { bytesContentType } from "./exchange.js";
import type { JsonSchema, parameters, schemas } from "./openapi-schemas.js";
import { systemPath } from "./system-shared-memory.js";

/** What one route takes and answers: the routes are made from it, and so is the document at /openapi.json. */
export interface Operation {
  readonly method: "GET" | "POST" | "PUT";
  /** With the parameters of the path in braces. */
  readonly path: string;
  readonly tag: keyof typeof tags;
  readonly summary: string;
  readonly parameters?: readonly (keyof typeof parameters)[];
  readonly body?: RequestBody;
  /** The answer of status 200; null if there is none. */
  readonly success: { readonly description: string; readonly body?: MediaType } | null;
  /** Operations that make sense after this one, and the expression for the region they are then about. */
  readonly next?: { readonly regionName: string; readonly operations: readonly string[] };
  /** What can go wrong beyond what can with any request. */
  readonly errors: readonly ErrorCode[];
  /** Status 400 has an empty body. */
  readonly emptyBadRequest?: true;
}

/** What a body is. */
export interface MediaType {
  readonly contentType: string;
  readonly schema: JsonSchema;
}

interface RequestBody extends MediaType {
  readonly required: boolean;
}

export const tags = {
  "CUDA Shared Memory": "Triton's calls to register, list and unregister regions of GPU memory",
  "System Shared Memory": "Triton's calls for host memory, answered as by a service that has none",
  Service: "Health and metadata, as KServe's protocol has them",
  Contents: "The bytes of regions, where the service was started with --allow-contents",
} as const;

const contentsPath = "/v1/regions/{region_name}/contents";
const json = (schema: JsonSchema): MediaType => ({ contentType: "application/json", schema });
const named = (name: keyof typeof schemas) => ({ $ref: `#/components/schemas/${name}` });
const list = (name: keyof typeof schemas) => json({ type: "array", items: named(name) });
const bytes = { contentType: bytesContentType, schema: { type: "string", format: "binary" } };
const ofOneRegion = [
  "cudaSharedMemoryRegionStatus",
  "readRegionContents",
  "writeRegionContents",
  "cudaSharedMemoryUnregister",
];

/** Every operation of the HTTP face, by its operationId. */
export const operations = {
  cudaSharedMemoryStatus: {
    method: "GET",
    path: `${cudaPath}/status`,
    tag: "CUDA Shared Memory",
    summary: "List every region, sorted by the bytes of its name",
    success: { description: "The regions", body: list("CudaSharedMemoryRegion") },
    next: { regionName: "$response.body#/0/name", operations: ofOneRegion },
    errors: [],
  },
  cudaSharedMemoryRegionStatus: {
    method: "GET",
    path: `${cudaPath}/region/{region_name}/status`,
    tag: "CUDA Shared Memory",
    summary: "Show one region",
    parameters: ["regionName"],
    success: { description: "An array of that region", body: list("CudaSharedMemoryRegion") },
    errors: ["INVALID_ARGUMENT", "NOT_FOUND"],
  },
  cudaSharedMemoryRegister: {
    method: "POST",
    path: `${cudaPath}/region/{region_name}/register`,
    tag: "CUDA Shared Memory",
    summary:
      "Open a CUDA IPC handle and keep the memory mapped under a name; any content type is read as JSON",
    parameters: ["regionName"],
    body: { ...json(named("CudaSharedMemoryRegistration")), required: true },
    success: { description: "Registered; the body is empty" },
    next: { regionName: "$request.path.region_name", operations: ofOneRegion },
    errors: ["INVALID_ARGUMENT", "ALREADY_EXISTS", "RESOURCE_EXHAUSTED", "UNIMPLEMENTED", "UNAVAILABLE"],
  },
  cudaSharedMemoryRegisterWithoutName: {
    method: "POST",
    path: `${cudaPath}/register`,
    tag: "CUDA Shared Memory",
    summary: "Refused: a register needs a name in its path",
    success: null,
    errors: ["INVALID_ARGUMENT", "UNIMPLEMENTED"],
  },
  cudaSharedMemoryUnregister: {
    method: "POST",
    path: `${cudaPath}/region/{region_name}/unregister`,
    tag: "CUDA Shared Memory",
    summary: "Close a region, or do nothing if there is none; any body is ignored",
    parameters: ["regionName"],
    success: {
      description: "There is no such region, or it goes when its last user lets go; the body is empty",
    },
    next: { regionName: "$request.path.region_name", operations: ["cudaSharedMemoryRegister"] },
    errors: ["INVALID_ARGUMENT"],
  },
  cudaSharedMemoryUnregisterAll: {
    method: "POST",
    path: `${cudaPath}/unregister`,
    tag: "CUDA Shared Memory",
    summary: "Close every region there is, whoever registered it; any body is ignored",
    success: { description: "All are closed, or go when their last users let go; the body is empty" },
    errors: [],
  },
  systemSharedMemoryStatus: {
    method: "GET",
    path: `${systemPath}/status`,
    tag: "System Shared Memory",
    summary: "List no region",
    success: { description: "An empty array", body: list("SystemSharedMemoryRegion") },
    errors: [],
  },
  systemSharedMemoryRegionStatus: {
    method: "GET",
    path: `${systemPath}/region/{region_name}/status`,
    tag: "System Shared Memory",
    summary: "Find no region",
    parameters: ["systemRegionName"],
    success: null,
    errors: ["INVALID_ARGUMENT", "NOT_FOUND"],
  },
  systemSharedMemoryRegister: {
    method: "POST",
    path: `${systemPath}/region/{region_name}/register`,
    tag: "System Shared Memory",
    summary: "Refused: not supported",
    parameters: ["systemRegionName"],
    success: null,
    errors: ["UNIMPLEMENTED"],
  },
  systemSharedMemoryRegisterWithoutName: {
    method: "POST",
    path: `${systemPath}/register`,
    tag: "System Shared Memory",
    summary: "Refused: not supported",
    success: null,
    errors: ["UNIMPLEMENTED"],
  },
  systemSharedMemoryUnregister: {
    method: "POST",
    path: `${systemPath}/region/{region_name}/unregister`,
    tag: "System Shared Memory",
    summary: "Do nothing; any body is ignored",
    parameters: ["systemRegionName"],
    success: { description: "There is no such region; the body is empty" },
    errors: [],
  },
  systemSharedMemoryUnregisterAll: {
    method: "POST",
    path: `${systemPath}/unregister`,
    tag: "System Shared Memory",
    summary: "Do nothing; any body is ignored",
    success: { description: "There is no region; the body is empty" },
    errors: [],
  },
  serverMetadata: {
    method: "GET",
    path: "/v2",
    tag: "Service",
    summary: "Tell what the service is, and which CUDA driver it has",
    success: { description: "Name, version, extensions and driver", body: json(named("ServerMetadata")) },
    errors: [],
  },
  serverLive: {
    method: "GET",
    path: "/v2/health/live",
    tag: "Service",
    summary:
      "Tell whether the service is alive; status 400 with an empty body says that it must be restarted",
    success: { description: "Alive; the body is empty" },
    errors: ["UNAVAILABLE"],
    emptyBadRequest: true,
  },
  serverReady: {
    method: "GET",
    path: "/v2/health/ready",
    tag: "Service",
    summary: "Tell whether registers can succeed; status 400 with an empty body says that they cannot",
    success: { description: "Ready; the body is empty" },
    errors: ["UNAVAILABLE"],
    emptyBadRequest: true,
  },
  readRegionContents: {
    method: "GET",
    path: contentsPath,
    tag: "Contents",
    summary: "Read bytes of a region",
    parameters: ["regionName", "offset", "byteSize"],
    success: { description: "The bytes", body: bytes },
    errors: [
      "PERMISSION_DENIED",
      "INVALID_ARGUMENT",
      "NOT_FOUND",
      "OUT_OF_RANGE",
      "FAILED_PRECONDITION",
      "RESOURCE_EXHAUSTED",
    ],
  },
  writeRegionContents: {
    method: "PUT",
    path: contentsPath,
    tag: "Contents",
    summary: "Write bytes to a region",
    parameters: ["regionName", "offset", "byteSize"],
    body: { ...bytes, required: false },
    success: { description: "Written; the body is empty" },
    errors: [
      "PERMISSION_DENIED",
      "INVALID_ARGUMENT",
      "NOT_FOUND",
      "OUT_OF_RANGE",
      "FAILED_PRECONDITION",
      "RESOURCE_EXHAUSTED",
      "UNAVAILABLE",
    ],
  },
  doctorReport: {
    method: "GET",
    path: "/v1/doctor",
    tag: "Service",
    summary: "Look at the machine, the driver and every device, and prove that memory can be shared",
    success: { description: "What was found", body: json(named("DoctorReport")) },
    errors: ["PERMISSION_DENIED", "UNAVAILABLE"],
  },
  openApiDocument: {
    method: "GET",
    path: "/openapi.json",
    tag: "Service",
    summary: "This document",
    success: { description: "An OpenAPI 3.1 document", body: json({ type: "object" }) },
    errors: [],
  },
} as const satisfies Readonly<Record<string, Operation>>;

export type OperationId = keyof typeof operations;
