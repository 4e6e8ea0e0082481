import { maxRegionNameBytes } from "../core/region-name.js";
import { httpStatuses } from "./errors.js";
import { base64Handle, type JsonSchema, regionName, sizeInBytes, uint64 } from "./json-schema.js";
import { regionParameters } from "./v1/region-parameters.js";
import { regionSchemas } from "./v1/region-schemas.js";

const findingStatus = { type: "string", enum: ["OK", "WARN", "FAIL"] } as const;

/** Schemas that the document names. */
export const schemas = {
  CudaSharedMemoryRegion: {
    type: "object",
    required: ["name", "device_id", "byte_size"],
    properties: {
      name: { type: "string", description: "Name of the region" },
      device_id: { ...uint64, description: "GPU that the memory is on, as the service numbers its devices" },
      byte_size: { ...sizeInBytes, description: "Size of the region in bytes" },
    },
  },
  CudaSharedMemoryRegistration: {
    type: "object",
    description: "Members that are not listed are ignored. A member given twice with two values is refused.",
    required: ["raw_handle", "device_id", "byte_size"],
    properties: {
      raw_handle: {
        type: "object",
        description: "The 64 bytes of a cudaIpcMemHandle_t",
        required: ["b64"],
        properties: { b64: base64Handle },
      },
      device_id: {
        ...uint64,
        description: "GPU that the memory was allocated on, as the service numbers its devices",
      },
      byte_size: {
        ...sizeInBytes,
        description:
          "Size of the region in bytes, at most that of the allocation; digits alone, no 64.0 or 1e2",
      },
    },
  },
  SystemSharedMemoryRegion: {
    type: "object",
    description: "Never sent: this service has no region of this kind.",
    properties: {
      name: { type: "string" },
      key: { type: "string" },
      offset: uint64,
      byte_size: uint64,
    },
  },
  ServerMetadata: {
    type: "object",
    required: ["name", "version", "extensions", "cuda_driver", "instance_id", "epoch"],
    properties: {
      name: { type: "string" },
      version: { type: "string" },
      extensions: { type: "array", items: { type: "string" } },
      cuda_driver: {
        type: "string",
        description: "`cuda` for NVIDIA's driver, `emulated` for ours on host memory, else why there is none",
      },
      instance_id: { type: "string", description: "Another one for each start of the service" },
      epoch: { ...uint64, description: "Grows by one with each start on one state file; 1 without" },
    },
  },
  DoctorReport: {
    type: "object",
    description: "What `cudashm doctor --json` prints",
    required: ["schema", "version", "status", "findings"],
    properties: {
      schema: {
        type: "integer",
        minimum: 1,
        maximum: 2 ** 31 - 1,
        description: "Grows when this form changes",
      },
      version: { type: "string", description: "The service's version" },
      status: { ...findingStatus, description: "The worst of the findings" },
      findings: {
        type: "array",
        items: {
          type: "object",
          required: ["check", "status", "text", "facts"],
          properties: {
            check: { type: "string", description: "What was looked at" },
            status: findingStatus,
            text: { type: "string", description: "What was found" },
            advice: { type: "string", description: "What to do; absent where nothing is to be done" },
            facts: { type: "object", description: "The same for machines; null for what could not be told" },
          },
        },
      },
    },
  },
  ...regionSchemas,
  ErrorResponse: {
    type: "object",
    required: ["error"],
    properties: {
      error: { type: "string", description: "What was wrong, what was expected and what to do" },
    },
  },
} as const satisfies Readonly<Record<string, JsonSchema>>;

/** Parameters that the document names. */
export const parameters = {
  regionName: {
    name: "region_name",
    in: "path",
    required: true,
    description: `Name of the region, percent-encoded UTF-8: at most ${maxRegionNameBytes} bytes, no control character. It may hold an encoded slash.`,
    schema: regionName,
  },
  systemRegionName: {
    name: "region_name",
    in: "path",
    required: true,
    description: "Any name: there is no region of this kind.",
    schema: { type: "string" },
  },
  offset: {
    name: "offset",
    in: "query",
    required: false,
    description: "First byte, counted from the start of the region",
    schema: { ...uint64, default: 0 },
  },
  byteSize: {
    name: "byte_size",
    in: "query",
    required: false,
    description: "Number of bytes; without it all to the end of the region, or of the body",
    schema: uint64,
  },
  ...regionParameters,
} as const satisfies Readonly<Record<string, JsonSchema>>;

/** Headers that the document names. */
export const headers = {
  RequestId: {
    required: true,
    description: "Names the request in the service's log",
    schema: { type: "string", minLength: 1 },
  },
  ErrorCode: {
    description:
      "The error in gRPC's words, since several share a status; absent where no operation was reached",
    schema: { type: "string", enum: Object.keys(httpStatuses) },
  },
} as const satisfies Readonly<Record<string, JsonSchema>>;
