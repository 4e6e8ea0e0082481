import { isIP } from "node:net";
import { RegistryError } from "../core/errors.js";
import { answerEmpty } from "./answers.js";
import type { AnswerHeaders, Exchange } from "./exchange.js";
import type { Handler } from "./observed-handler.js";

export interface BrowserGuardOptions {
  /** Origins whose pages may use the service, exactly as a browser sends them; none if left out. */
  readonly allowedOrigins?: readonly string[] | undefined;
  /**
   * Names that a request's Host may have besides localhost and IP addresses, with or without a port. Left out,
   * any will do: only what listens on loopback can be reached by a page whose name was made to mean this machine.
   */
  readonly allowedHosts?: readonly string[] | undefined;
}

/** Seconds that a browser may remember what it was told in advance of a request. */
const preflightMaxAgeSecs = 600;

/**
 * Keeps the pages of a browser out, of whatever site, unless their origin is listed. An Origin is never compared
 * with Host: a page whose name was made to mean this machine sends equal ones. Clients that are no browser send
 * no Origin and notice nothing.
 */
export class BrowserGuard {
  readonly #headersOf: ReadonlyMap<string, AnswerHeaders>;
  readonly #allowedHosts: ReadonlySet<string> | null;
  #lastHost = "";

  constructor({ allowedOrigins = [], allowedHosts }: BrowserGuardOptions) {
    this.#headersOf = new Map(allowedOrigins.map((origin) => [origin, readableBy(origin)]));
    this.#allowedHosts =
      allowedHosts === undefined ? null : new Set(allowedHosts.map((host) => host.toLowerCase()));
  }

  /** Lets a listed page read whatever is answered. Throws PERMISSION_DENIED where a page may not call at all. */
  check(exchange: Exchange): void {
    if (this.#allowedHosts !== null && exchange.isOpenToBrowsers) {
      this.#checkHost(exchange.header("host"), this.#allowedHosts);
    }
    const origin = exchange.header("origin");
    if (origin === undefined) return;
    exchange.extraHeaders = this.#headersOf.get(origin);
    if (exchange.extraHeaders === undefined) {
      throw new RegistryError(
        "PERMISSION_DENIED",
        `pages of the origin ${quote(origin)} may not use this service; start it with --http-allowed-origin and that origin to let them`,
      );
    }
  }

  /** `handler` for requests that are no page's, or a listed page's. */
  guard(handler: Handler): Handler {
    return (exchange) => {
      this.check(exchange);
      return handler(exchange);
    };
  }

  /**
   * Answers a browser that asks in advance whether a listed page may call one of `methods`; null if the request
   * is nothing of the kind.
   */
  preflight(exchange: Exchange, methods: () => string): Response | null {
    if (exchange.method !== "OPTIONS" || exchange.header("access-control-request-method") === undefined)
      return null;
    this.check(exchange);
    const allowed = methods();
    if (exchange.extraHeaders === undefined || allowed === "") return null;
    const wanted = exchange.header("access-control-request-headers");
    return answerEmpty(exchange, 200, {
      "access-control-allow-methods": allowed,
      ...(wanted !== undefined && { "access-control-allow-headers": wanted }),
      "access-control-max-age": String(preflightMaxAgeSecs),
    });
  }

  #checkHost(host: string | undefined, allowed: ReadonlySet<string>): void {
    // Most clients send the same one always.
    if (host === undefined || host === "" || host === this.#lastHost) return;
    const lower = host.toLowerCase();
    const name = withoutPort(lower);
    if (name !== "localhost" && !isAddress(name) && !allowed.has(lower) && !allowed.has(name)) {
      throw new RegistryError(
        "PERMISSION_DENIED",
        `this service is not called ${quote(host)}; use localhost or an IP address, or start it with --http-allowed-host and that name`,
      );
    }
    this.#lastHost = host;
  }
}

function readableBy(origin: string): AnswerHeaders {
  return {
    "access-control-allow-origin": origin,
    "access-control-expose-headers": "x-request-id, x-error-code",
    vary: "Origin",
  };
}

function withoutPort(host: string): string {
  return host.replace(/:\d*$/, "");
}

function isAddress(name: string): boolean {
  return name.startsWith("[") ? name.endsWith("]") && isIP(name.slice(1, -1)) === 6 : isIP(name) === 4;
}

/** As much of it as a header that means well has. */
function quote(text: string): string {
  return `'${text.length > 256 ? `${text.slice(0, 256)}...` : text}'`;
}
