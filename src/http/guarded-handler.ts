import type { ApiCategory } from "../core/api-category.js";
import type { Gate } from "../core/gate.js";
import type { Handler } from "./observed-handler.js";

/** The handler behind the gate: it runs for a call that was let in, which leaves when it was answered. */
export function guarded(handler: Handler, category: ApiCategory, gate: Gate | undefined): Handler {
  if (gate === undefined) return handler;
  return async (exchange) => {
    exchange.owner = gate.enter(category, exchange);
    try {
      return await handler(exchange);
    } finally {
      gate.leave(category);
    }
  };
}
