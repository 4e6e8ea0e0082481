import type { ErrorCode } from "./errors.js";
import type { Protocol } from "./region.js";

/** How a request ended. `OK` is any answer that is no error, also "not ready". */
export type RequestOutcome = ErrorCode | "OK";

/** Told of the requests of one operation. */
export interface OperationObserver {
  /** A request begins; answers the time, by `performance.now()`, to give to `end`. */
  begin(): number;
  /** It was answered. Called once for every `begin`. */
  end(startedAt: number, outcome: RequestOutcome, requestId: string): void;
}

/** Asked once for each operation of a face, before the first request. */
export type ObserveOperation = (protocol: Protocol, operation: string) => OperationObserver;

/** One that tells all of them; undefined if there are none. */
export function tellAll(observers: readonly ObserveOperation[]): ObserveOperation | undefined {
  if (observers.length < 2) return observers[0];
  return (protocol, operation) => {
    const all = observers.map((observe) => observe(protocol, operation));
    return {
      begin: () => all.reduce((_, each) => each.begin(), 0),
      end: (startedAt, outcome, requestId) => {
        for (const each of all) each.end(startedAt, outcome, requestId);
      },
    };
  };
}
