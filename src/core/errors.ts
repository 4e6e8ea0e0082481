/** Every way a call can end badly. Named after gRPC's status codes; each face maps them with one table. */
export type ErrorCode =
  | "INVALID_ARGUMENT"
  | "NOT_FOUND"
  | "ALREADY_EXISTS"
  | "PERMISSION_DENIED"
  | "UNAUTHENTICATED"
  | "FAILED_PRECONDITION"
  | "OUT_OF_RANGE"
  | "RESOURCE_EXHAUSTED"
  | "UNIMPLEMENTED"
  | "UNAVAILABLE"
  | "CANCELLED"
  | "DEADLINE_EXCEEDED"
  | "INTERNAL";

/** What the CUDA driver answered when it refused a call. */
export interface DriverRefusal {
  /** The driver's name for the result, such as `CUDA_ERROR_INVALID_VALUE`. */
  readonly cudaError: string;
  /** The `CUresult` number. */
  readonly cudaCode: number;
  /** The likely cause, in words for the person who has to mend it. */
  readonly hint: string;
}

/**
 * The only error the core raises on purpose. Its message is safe to send to a client: it names nothing but
 * the caller's own arguments, and never a handle or an address. `cause`, where set, is for the log alone.
 */
export class RegistryError extends Error {
  override readonly name = "RegistryError";
  readonly code: ErrorCode;
  readonly driver: DriverRefusal | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    options: { driver?: DriverRefusal | undefined; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.driver = options.driver;
  }
}

/** The fixed text for faults of ours: what went wrong is in the log, under the request's id. */
export const internalErrorText = "internal error; the cause is in the service's log";

/** The text of every refusal while the service stops, Triton's own. */
export const exitingText = "Server exiting";
