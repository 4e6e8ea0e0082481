/** Options of every call. */
export interface CallOptions {
  /** Gives the call up: CANCELLED, or DEADLINE_EXCEEDED for an `AbortSignal.timeout`. */
  readonly signal?: AbortSignal | undefined;
}
