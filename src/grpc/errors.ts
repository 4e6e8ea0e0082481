import { type StatusObject, status } from "@grpc/grpc-js";
import { type ErrorCode, internalErrorText, RegistryError } from "../core/errors.js";
import type { RequestOutcome } from "../core/request-observer.js";

const statusOfCode = {
  INVALID_ARGUMENT: status.INVALID_ARGUMENT,
  NOT_FOUND: status.NOT_FOUND,
  ALREADY_EXISTS: status.ALREADY_EXISTS,
  PERMISSION_DENIED: status.PERMISSION_DENIED,
  UNAUTHENTICATED: status.UNAUTHENTICATED,
  FAILED_PRECONDITION: status.FAILED_PRECONDITION,
  OUT_OF_RANGE: status.OUT_OF_RANGE,
  RESOURCE_EXHAUSTED: status.RESOURCE_EXHAUSTED,
  UNIMPLEMENTED: status.UNIMPLEMENTED,
  UNAVAILABLE: status.UNAVAILABLE,
  CANCELLED: status.CANCELLED,
  DEADLINE_EXCEEDED: status.DEADLINE_EXCEEDED,
  INTERNAL: status.INTERNAL,
} as const satisfies Record<ErrorCode, status>;

// A status travels in headers, percent-encoded to up to three times its size, and C++ clients refuse headers
// of more than 8 KiB. Every text of the core fits; a driver's or an observer's might not.
const maxDetailsBytes = 2560;
const keptTailBytes = 512;

/** What the client is told: a RegistryError's own text, or for any other error a fixed one. */
export function statusOfError(error: unknown): Pick<StatusObject, "code" | "details"> {
  return error instanceof RegistryError
    ? { code: statusOfCode[error.code], details: statusDetails(error.message) }
    : { code: status.INTERNAL, details: internalErrorText };
}

/** The status of a call that ended so. */
export function statusOfOutcome(outcome: RequestOutcome): status {
  return outcome === "OK" ? status.OK : statusOfCode[outcome];
}

/** True for what the operator must hear of: faults of ours, not refusals. */
export function isFault(error: unknown): boolean {
  return !(error instanceof RegistryError) || error.code === "INTERNAL";
}

/** `text` as a status can carry it: well-formed, and with the middle left out where it is too long. */
export function statusDetails(text: string): string {
  // grpc-js passes the text to encodeURI, which throws on an unpaired surrogate.
  const wellFormed = text.toWellFormed();
  if (Buffer.byteLength(wellFormed) <= maxDetailsBytes) return wellFormed;
  const bytes = Buffer.from(wellFormed);
  const head = characterStart(bytes, maxDetailsBytes - keptTailBytes);
  const tail = characterStart(bytes, bytes.length - keptTailBytes);
  return `${bytes.toString("utf8", 0, head)} ... ${bytes.toString("utf8", tail)}`;
}

/** The start of the UTF-8 character that holds the byte at `index`. */
function characterStart(bytes: Uint8Array, index: number): number {
  let start = index;
  while (((bytes[start] ?? 0) & 0xc0) === 0x80) start--;
  return start;
}
