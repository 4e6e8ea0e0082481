import type { HeaderSource } from "./restrictions.js";

/** An operation of a face in its protocol's own words. `route` is undefined for what matches none. */
export type TracedOperation =
  | { readonly protocol: "http"; readonly route: string | undefined }
  | { readonly protocol: "grpc"; readonly service: string; readonly method: string };

/** What a trace needs of a request: its headers may say which trace it belongs to. */
export interface TracedRequest extends HeaderSource {
  readonly requestId: string | undefined;
  /** The method of HTTP. */
  readonly method?: string;
}

/** The trace of one request. */
interface RequestTrace {
  /** Runs `work`; what that asks of the driver, at once or later, belongs to this request. */
  run<T>(work: () => T): T;
  /** It was answered, with a status of its own protocol. Called once. */
  end(status: number): void;
}

/** Begins the trace of a request of one operation. */
export type BeginTrace = (request: TracedRequest) => RequestTrace;

/** Asked once for each operation of a face, before the first request. */
export type TraceOperation = (operation: TracedOperation) => BeginTrace;
