import type { ContentfulStatusCode } from "hono/utils/http-status";
import { type ErrorCode, internalErrorText, RegistryError } from "../core/errors.js";
import type { FaceContext } from "../core/face-context.js";
import { answerError } from "./answers.js";
import type { Exchange } from "./exchange.js";

/** The HTTP status of each error. A client's fault is never a 5xx; 499 is what nobody is left to read. */
export const httpStatuses = {
  INVALID_ARGUMENT: 400,
  NOT_FOUND: 404,
  ALREADY_EXISTS: 400,
  PERMISSION_DENIED: 403,
  UNAUTHENTICATED: 401,
  FAILED_PRECONDITION: 400,
  OUT_OF_RANGE: 400,
  RESOURCE_EXHAUSTED: 429,
  UNIMPLEMENTED: 501,
  UNAVAILABLE: 503,
  CANCELLED: 499 as ContentfulStatusCode,
  DEADLINE_EXCEEDED: 504,
  INTERNAL: 500,
} as const satisfies Record<ErrorCode, ContentfulStatusCode>;

/** Statuses of what Node's parser refuses; anything else is 400. */
export const parserStatuses: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

/** Names the error in gRPC's words, since several of them share a status. */
const errorCodeHeader = "x-error-code";

/** What every request is told whose client went away before its answer. */
export function clientGone(): RegistryError {
  return new RegistryError("CANCELLED", "the client went away before the answer");
}

/** Triton's text for a body over the limit; both numbers are bytes. */
export function bodyTooLarge(byteSize: number, limit: number): RegistryError {
  return new RegistryError(
    "INVALID_ARGUMENT",
    `request JSON size of ${byteSize} bytes exceeds the maximum allowed input size of ${limit} bytes. Use --http-max-input-size to increase the limit.`,
  );
}

/** The status that any error is answered with. */
export function statusOfError(error: unknown): ContentfulStatusCode {
  return httpStatuses[error instanceof RegistryError ? error.code : "INTERNAL"];
}

/** Answers any error. A fault of ours goes to the log whole, to the client as a fixed text. */
export function answerFailure(exchange: Exchange, error: unknown, context: FaceContext): Response {
  const known = error instanceof RegistryError;
  if (!known || error.code === "INTERNAL") {
    context.reportFault({ requestId: exchange.requestId ?? "", protocol: "http", error });
  }
  const broken = exchange.breakOff();
  if (broken !== null) return broken;
  const code = known ? error.code : "INTERNAL";
  const text = known ? error.message : internalErrorText;
  return answerError(exchange, statusOfError(error), text, {
    [errorCodeHeader]: code,
    // What a 401 has to say by HTTP's rules.
    ...(code === "UNAUTHENTICATED" && { "www-authenticate": "Bearer" }),
  });
}
