import { randomBytes } from "node:crypto";

/** The header, and over gRPC the metadata, that carries a request's id both ways. */
export const requestIdHeader = "x-request-id";

// Long enough for a UUID or a traceparent, too short for a handle in base64; safe in a header and in a log line.
const usable = /^[\w.:/+=-]{1,64}$/;

/** The id that a client gave its request, or undefined if it gave none that can be used. */
export function clientRequestId(given: string | undefined): string | undefined {
  return given !== undefined && usable.test(given) ? given : undefined;
}

/**
 * A source of ids for requests: unique within it, and almost surely among processes. An id costs no
 * randomness of its own, so it is no secret and can be guessed.
 */
export function createRequestIds(): () => string {
  const prefix = randomBytes(6).toString("base64url");
  let count = 0;
  return () => `${prefix}-${(++count).toString(36)}`;
}
