import type { ApiCategory } from "../core/api-category.js";
import type { Gate } from "../core/gate.js";
import type { RegionRegistry } from "../core/registry.js";
import type { Handler } from "./observed-handler.js";

/** The handler behind the gate: it runs for a call that was let in, which leaves when it was answered. */
export function guarded(
  handler: Handler,
  category: ApiCategory,
  gate: Gate,
  { sessions }: RegionRegistry,
): Handler {
  if (!gate.countsCalls) {
    return (exchange) => {
      exchange.caller = gate.enter(category, exchange, sessions);
      return handler(exchange);
    };
  }
  return async (exchange) => {
    exchange.caller = gate.enter(category, exchange, sessions);
    try {
      return await handler(exchange);
    } finally {
      gate.leave(category);
    }
  };
}
