import type { FaceContext } from "../core/face-context.js";
import type { CallContext } from "../core/region.js";
import type { Exchange } from "./exchange.js";

/** What the registry is told about a call over HTTP. */
export function callContext(exchange: Exchange, { shutdown }: FaceContext): CallContext {
  const { owner, isAdmin, session } = exchange.caller;
  return {
    owner,
    isAdmin,
    session,
    protocol: "http",
    requestId: exchange.requestId ?? "",
    signal: exchange.signal(shutdown),
  };
}
