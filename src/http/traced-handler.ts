import type { BeginTrace } from "../core/request-tracer.js";
import { statusOfError } from "./errors.js";
import type { Handler } from "./observed-handler.js";

/** The handler, with each of its requests traced by `begin`; without that, the handler itself. */
export function traced(handler: Handler, begin: BeginTrace | undefined): Handler {
  if (begin === undefined) return handler;
  return async (exchange) => {
    const trace = begin(exchange);
    let status = 500;
    try {
      const answer = await trace.run(() => handler(exchange));
      status = exchange.statusOf(answer);
      return answer;
    } catch (error) {
      status = statusOfError(error);
      throw error;
    } finally {
      trace.end(status);
    }
  };
}
