import type { FaceContext } from "../core/face-context.js";
import type { CallContext } from "../core/region.js";
import type { Exchange } from "./exchange.js";

/** What the registry is told about a call over HTTP that waits for nothing. */
export function callerContext(exchange: Exchange): CallContext {
  const { owner, isAdmin, session } = exchange.caller;
  return { owner, isAdmin, session, protocol: "http", requestId: exchange.requestId ?? "" };
}

/** What the registry is told about a call over HTTP. */
export function callContext(exchange: Exchange, { shutdown }: FaceContext): CallContext {
  return { ...callerContext(exchange), signal: exchange.signal(shutdown) };
}
