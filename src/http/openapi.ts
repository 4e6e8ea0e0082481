import { stringify } from "lossless-json";
import type { FaceContext } from "../core/face-context.js";
import { answerJson } from "./answers.js";
import { apiCategory } from "./api-category.js";
import { httpStatuses, parserStatuses } from "./errors.js";
import type { Exchange } from "./exchange.js";
import type { JsonSchema } from "./json-schema.js";
import { headers, parameters, schemas } from "./openapi-schemas.js";
import { type MediaType, type Operation, tags } from "./operation.js";
import { operations } from "./operations.js";

/** Statuses of errors, each with the name of its response. */
const errorResponses: Readonly<Record<number, readonly [name: string, description: string]>> = {
  400: ["BadRequest", "The request is wrong, or cannot be met; the text says why"],
  401: ["Unauthorized", "The service wants a token, and this is none of its own"],
  403: ["Forbidden", "Switched off in this service, or not for this caller"],
  404: ["NotFound", "There is no such region"],
  408: ["RequestTimeout", "The request did not arrive in time"],
  413: ["ContentTooLarge", "The extensions of a chunk are too long"],
  429: ["TooManyRequests", "A limit of the service is reached, or the device has too many calls waiting"],
  431: ["HeadersTooLarge", "The headers are too long"],
  500: ["Fault", "A fault of the service, or memory that the driver would not take back"],
  501: ["NotImplemented", "Not supported, or switched off in this service"],
  503: [
    "Unavailable",
    "There is no usable CUDA driver, the state file cannot be written, or the service is stopping",
  ],
  504: ["DeadlineExceeded", "What was waited for did not come about in the time given"],
};

/** What any request can be answered. */
const commonStatuses = [
  400,
  httpStatuses.PERMISSION_DENIED,
  ...Object.values(parserStatuses),
  httpStatuses.INTERNAL,
];

/** What any request can be answered but those of health, which are open to all. */
const gateStatuses = [httpStatuses.UNAUTHENTICATED, httpStatuses.RESOURCE_EXHAUSTED];

const requestId = { "x-request-id": { $ref: "#/components/headers/RequestId" } };

/** Serves the OpenAPI document of every route, made when it is first asked for: most services never are. */
export function createOpenApi({ info }: FaceContext) {
  let bytes: Buffer<ArrayBuffer> | undefined;
  return (exchange: Exchange): Response => {
    bytes ??= Buffer.from(stringify(openApiDocument(info.version)) ?? "");
    return answerJson(exchange, bytes);
  };
}

/** The OpenAPI 3.1 document of the HTTP face; numbers over 2^53 in it are bigints. */
export function openApiDocument(version: string): JsonSchema {
  const paths: Record<string, Record<string, JsonSchema>> = {};
  for (const [id, operation] of Object.entries<Operation>(operations)) {
    const { method, path } = operation;
    paths[path] = { ...paths[path], [method.toLowerCase()]: describeOperation(id, operation) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "cudashm",
      summary: "Triton Inference Server's CUDA shared memory API as a service of its own",
      description:
        "Paths are matched as they are written. HEAD is answered wherever GET is; another method with 405 and `Allow`, an unknown path with 404, both with an ErrorResponse. Where the service was started with a token file, every operation but those of health wants a bearer token.",
      version,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [
      { url: "/", description: "The service that this document came from" },
      {
        url: "http://{host}:{port}",
        variables: { host: { default: "localhost" }, port: { default: "8000" } },
      },
    ],
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas,
      parameters,
      headers,
      responses: Object.fromEntries(
        Object.values(errorResponses).map(([name, description]) => [name, describeError(description)]),
      ),
    },
  };
}

function describeOperation(operationId: string, operation: Operation): JsonSchema {
  const { tag, summary, parameters: named, body } = operation;
  return {
    operationId,
    tags: [tag],
    summary,
    ...(named && { parameters: named.map((name) => ({ $ref: `#/components/parameters/${name}` })) }),
    ...(body && { requestBody: { required: body.required, content: describeBody(body) } }),
    responses: describeResponses(operation),
  };
}

function describeResponses(operation: Operation): JsonSchema {
  const { success, errors, next, emptyBadRequest } = operation;
  const gated = apiCategory(operation) === "health" ? [] : gateStatuses;
  const statuses = new Set([...commonStatuses, ...gated, ...errors.map((code) => httpStatuses[code])]);
  const responses: Record<string, JsonSchema> = {};
  if (success !== null) {
    const { description, body } = success;
    responses["200"] = {
      description,
      headers: requestId,
      ...(body && { content: describeBody(body) }),
      ...(next && { links: describeLinks(next) }),
    };
  }
  for (const status of [...statuses].sort()) {
    const [name] = errorResponses[status] ?? [];
    responses[status] = { $ref: `#/components/responses/${name}` };
  }
  if (emptyBadRequest) responses["400"] = { description: "Not ready; the body is empty", headers: requestId };
  return responses;
}

function describeBody({ contentType, schema }: MediaType): JsonSchema {
  return { [contentType]: { schema } };
}

function describeError(description: string): JsonSchema {
  return {
    description,
    headers: { ...requestId, "x-error-code": { $ref: "#/components/headers/ErrorCode" } },
    content: { "application/json": { schema: { $ref: "#/components/schemas/ErrorResponse" } } },
  };
}

function describeLinks({ regionName, operations }: NonNullable<Operation["next"]>): JsonSchema {
  const link = (operationId: string) => ({ operationId, parameters: { region_name: regionName } });
  return Object.fromEntries(operations.map((operationId) => [operationId, link(operationId)]));
}
