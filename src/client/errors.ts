const codes = [
  "INVALID_ARGUMENT",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "UNAUTHENTICATED",
  "FAILED_PRECONDITION",
  "OUT_OF_RANGE",
  "RESOURCE_EXHAUSTED",
  "UNIMPLEMENTED",
  "UNAVAILABLE",
  "CANCELLED",
  "DEADLINE_EXCEEDED",
  "INTERNAL",
  "UNKNOWN",
] as const;

/** gRPC's names, the same as over the service's gRPC face; UNKNOWN is an answer that the service never gives. */
export type CudaSharedMemoryErrorCode = (typeof codes)[number];

/** Used where an answer names no code itself: by a proxy in between, or by Triton. */
const codesOfStatuses: Readonly<Record<number, CudaSharedMemoryErrorCode>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  405: "UNIMPLEMENTED",
  429: "RESOURCE_EXHAUSTED",
  499: "CANCELLED",
  500: "INTERNAL",
  501: "UNIMPLEMENTED",
  502: "UNAVAILABLE",
  503: "UNAVAILABLE",
  504: "DEADLINE_EXCEEDED",
};

/** How a call of the client failed. Its message is the service's own text wherever the service answered. */
export class CudaSharedMemoryError extends Error {
  override readonly name = "CudaSharedMemoryError";
  readonly code: CudaSharedMemoryErrorCode;
  /** null if there was no answer. */
  readonly httpStatus: number | null;
  /** Names the request in the service's log; null if there was no answer or it named none. */
  readonly requestId: string | null;

  constructor(
    code: CudaSharedMemoryErrorCode,
    message: string,
    details: { httpStatus?: number | null; requestId?: string | null; cause?: unknown } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.httpStatus = details.httpStatus ?? null;
    this.requestId = details.requestId ?? null;
  }
}

/** Why a watch of events ended. */
export class EventsEndedError extends CudaSharedMemoryError {
  /** Where the next watch goes on, as its `after`; null if no event came. */
  readonly lastEventId: string | null;

  constructor(why: CudaSharedMemoryError, lastEventId: string | null) {
    const { httpStatus, requestId } = why;
    super(why.code, why.message, { httpStatus, requestId, cause: why.cause ?? why });
    this.lastEventId = lastEventId;
  }
}

/** Refuses an argument that cannot be sent as it is. */
export function invalidArgument(message: string, cause?: unknown): CudaSharedMemoryError {
  return new CudaSharedMemoryError("INVALID_ARGUMENT", message, { cause });
}

/** The error that the service tells in the middle of an answer. */
export function errorTold(answer: Response, code: string, message: string): CudaSharedMemoryError {
  return failedAnswer(codeNamed(code) ?? "UNKNOWN", answer, message);
}

/** The error that an answer other than 200 stands for. */
export function refusalIn(answer: Response, body: string): CudaSharedMemoryError {
  const code = codeNamed(answer.headers.get("x-error-code")) ?? codesOfStatuses[answer.status] ?? "UNKNOWN";
  return failedAnswer(code, answer, errorText(body) ?? `HTTP status ${answer.status}, ${notOurs(answer)}`);
}

/** The error that a 200 stands for whose body is not what the service answers there. */
export function malformedAnswer(answer: Response, cause?: unknown): CudaSharedMemoryError {
  return failedAnswer("UNKNOWN", answer, `malformed answer, ${notOurs(answer)}`, cause);
}

function failedAnswer(
  code: CudaSharedMemoryErrorCode,
  answer: Response,
  message: string,
  cause?: unknown,
): CudaSharedMemoryError {
  const requestId = answer.headers.get("x-request-id");
  return new CudaSharedMemoryError(code, message, { httpStatus: answer.status, requestId, cause });
}

// What the body says stays out of it: whoever answered may have sent back what it was sent, a handle.
function notOurs(answer: Response): string {
  const type = answer.headers.get("content-type") ?? "none";
  return `not in the service's words (content type ${type}); see whether baseUrl is right and what stands in between`;
}

function codeNamed(name: string | null): CudaSharedMemoryErrorCode | undefined {
  return codes.find((code) => code === name);
}

function errorText(body: string): string | null {
  try {
    const { error } = JSON.parse(body) as { error?: unknown };
    return typeof error === "string" && error !== "" ? error : null;
  } catch {
    return null;
  }
}
