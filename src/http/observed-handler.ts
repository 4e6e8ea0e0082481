import { RegistryError } from "../core/errors.js";
import type { OperationObserver, RequestOutcome } from "../core/request-observer.js";
import type { Exchange } from "./exchange.js";

/** What answers a request, or throws. */
export type Handler = (exchange: Exchange) => Response | Promise<Response>;

/**
 * The handler, with each of its requests told to `operation`. What needs no waiting is answered without, since
 * a promise costs a small request more than the rest of this. A handler that returns has succeeded, unless it
 * answers errors itself: `outcome` says with which.
 */
export function observed(
  handler: Handler,
  operation: OperationObserver | undefined,
  outcome: RequestOutcome = "OK",
): Handler {
  if (operation === undefined) return handler;
  return (exchange) => {
    const startedAt = operation.begin();
    const end = (how: RequestOutcome) => operation.end(startedAt, how, exchange.requestId ?? "");
    const fail = (error: unknown): never => {
      end(error instanceof RegistryError ? error.code : "INTERNAL");
      throw error;
    };
    let answer: Response | Promise<Response>;
    try {
      answer = handler(exchange);
    } catch (error) {
      return fail(error);
    }
    if (!(answer instanceof Promise)) {
      end(outcome);
      return answer;
    }
    return answer.then((response) => {
      end(outcome);
      return response;
    }, fail);
  };
}
