import type { ErrorCode } from "../core/errors.js";
import { bytesContentType } from "./exchange.js";
import type { JsonSchema } from "./json-schema.js";
import type { parameters, schemas } from "./openapi-schemas.js";

/** What one route takes and answers: the routes are made from it, and so is the document at /openapi.json. */
export interface Operation {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
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
  Service: "Health, metadata and devices",
  Regions:
    "Regions in full: owners, leases, exporters, waits and changes, for what Triton's calls have no words",
  Contents: "The bytes of regions, where the service was started with --allow-contents",
} as const;

/** A schema by its name in the document. */
export const named = (name: keyof typeof schemas) => ({ $ref: `#/components/schemas/${name}` });

export const json = (schema: JsonSchema): MediaType => ({ contentType: "application/json", schema });

export const bytes: MediaType = {
  contentType: bytesContentType,
  schema: { type: "string", format: "binary" },
};
