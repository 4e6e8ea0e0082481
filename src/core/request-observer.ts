import type { ErrorCode } from "./errors.js";
import type { Protocol } from "./region.js";

/** How a request ended. `OK` is any answer that is no error, also "not ready". */
export type RequestOutcome = ErrorCode | "OK";

/** Told of the requests of one operation. */
export interface OperationObserver {
  /** A request begins; answers what to give to `end`. */
  begin(): number;
  /** It was answered. Called once for every `begin`. */
  end(startedAt: number, outcome: RequestOutcome, requestId: string): void;
}

/** Asked once for each operation of a face, before the first request. */
export type ObserveOperation = (protocol: Protocol, operation: string) => OperationObserver;
