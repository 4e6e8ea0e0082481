import type { CallSignal } from "../core/abort.js";
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
  return new HttpCallContext(exchange, shutdown);
}

class HttpCallContext implements CallContext {
  readonly protocol = "http";
  readonly owner: string;
  readonly isAdmin: boolean;
  readonly session: string | null;
  readonly requestId: string;
  readonly #exchange: Exchange;
  readonly #shutdown: AbortSignal;
  #signal: CallSignal | undefined;

  constructor(exchange: Exchange, shutdown: AbortSignal) {
    const { owner, isAdmin, session } = exchange.caller;
    this.owner = owner;
    this.isAdmin = isAdmin;
    this.session = session;
    this.requestId = exchange.requestId ?? "";
    this.#exchange = exchange;
    this.#shutdown = shutdown;
  }

  /** Made when first asked for: most calls are answered without waiting and need none. */
  get signal(): CallSignal {
    this.#signal ??= this.#exchange.signal(this.#shutdown);
    return this.#signal;
  }
}
