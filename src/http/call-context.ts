import type { CallSignal } from "../core/abort.js";
import type { Caller } from "../core/caller.js";
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
  readonly requestId: string;
  readonly #caller: Caller;
  readonly #exchange: Exchange;
  readonly #shutdown: AbortSignal;
  #signal: CallSignal | undefined;

  constructor(exchange: Exchange, shutdown: AbortSignal) {
    this.requestId = exchange.requestId ?? "";
    this.#caller = exchange.caller;
    this.#exchange = exchange;
    this.#shutdown = shutdown;
  }

  get owner(): string {
    return this.#caller.owner;
  }

  get isAdmin(): boolean {
    return this.#caller.isAdmin;
  }

  get session(): string | null {
    return this.#caller.session;
  }

  /** Made when first asked for: most calls are answered without waiting and need none. */
  get signal(): CallSignal {
    this.#signal ??= this.#exchange.signal(this.#shutdown);
    return this.#signal;
  }
}
