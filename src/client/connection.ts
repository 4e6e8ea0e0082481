import { CudaSharedMemoryError, invalidArgument } from "./errors.js";
import { linkSignals } from "./signals.js";

type Fetch = typeof globalThis.fetch;

export interface ConnectionOptions {
  readonly baseUrl: string | URL;
  readonly fetch?: Fetch | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** One request; `path` starts with a slash and is sent below the base URL. */
export interface Call {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  /** Sent besides the connection's own. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: { readonly contentType: string; readonly content: string | Uint8Array };
  readonly signal?: AbortSignal | undefined;
}

/** Sends requests to one service. */
export class Connection {
  readonly #baseUrl: string;
  readonly #fetch: Fetch;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #signal: AbortSignal | undefined;

  /** Throws INVALID_ARGUMENT if the base URL is not a plain http or https URL. */
  constructor({ baseUrl, fetch, headers, signal }: ConnectionOptions) {
    this.#baseUrl = plainUrl(baseUrl);
    // The global one is looked up with each call and called on nothing: browsers refuse it as a method.
    this.#fetch = fetch ?? ((input, init) => globalThis.fetch(input, init));
    this.#headers = headers ?? {};
    this.#signal = signal;
  }

  /**
   * Sends a request and has `read` take the answer in. Rejects with `read`'s own error, with CANCELLED or
   * DEADLINE_EXCEEDED once a signal is aborted, and with UNAVAILABLE if the answer did not come or broke off.
   */
  async exchange<T>(call: Call, read: (answer: Response) => Promise<T>): Promise<T> {
    const send = this.#fetch;
    const { signal, unlink } = linkSignals([this.#signal, call.signal]);
    try {
      return await read(await send(this.#baseUrl + call.path, this.#requestOf(call, signal)));
    } catch (error) {
      throw this.#failure(error, signal);
    } finally {
      unlink();
    }
  }

  /** The same for an answer that is taken in piece by piece: `read` has to let go of it when it ends. */
  async *stream<T>(call: Call, read: (answer: Response) => AsyncIterable<T>): AsyncGenerator<T, void> {
    const send = this.#fetch;
    const { signal, unlink } = linkSignals([this.#signal, call.signal]);
    try {
      yield* read(await send(this.#baseUrl + call.path, this.#requestOf(call, signal)));
    } catch (error) {
      throw this.#failure(error, signal);
    } finally {
      unlink();
    }
  }

  #requestOf({ method, body, headers: own = {} }: Call, signal: AbortSignal): RequestInit {
    const headers = new Headers(this.#headers);
    for (const [name, value] of Object.entries(own)) headers.set(name, value);
    if (body !== undefined) headers.set("content-type", body.contentType);
    return {
      method,
      headers,
      signal,
      // A handle is for the service alone, and a POST that became a GET would seem to have succeeded.
      redirect: "error",
      ...(body && { body: sendable(body.content) }),
    };
  }

  #failure(error: unknown, signal: AbortSignal): CudaSharedMemoryError {
    if (error instanceof CudaSharedMemoryError) return error;
    return signal.aborted ? abortedBy(signal.reason) : this.#unavailable(error);
  }

  #unavailable(cause: unknown): CudaSharedMemoryError {
    const why = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
    const text = why instanceof Error && why.message !== "" ? why.message : String(why);
    return new CudaSharedMemoryError("UNAVAILABLE", `no answer from ${this.#baseUrl}: ${text}`, { cause });
  }
}

function abortedBy(cause: unknown): CudaSharedMemoryError {
  const timedOut = cause instanceof Error && cause.name === "TimeoutError";
  return timedOut
    ? new CudaSharedMemoryError("DEADLINE_EXCEEDED", "the call was given up: its time ran out", { cause })
    : new CudaSharedMemoryError("CANCELLED", "the call was given up: its signal was aborted", { cause });
}

/** The URL's text without a slash at its end. */
function plainUrl(baseUrl: string | URL): string {
  const expected =
    "expected an http or https URL with no user, query or fragment, such as http://127.0.0.1:8000";
  let url: URL;
  try {
    url = new URL(baseUrl);
  } catch (cause) {
    throw invalidArgument(`baseUrl is no URL; ${expected}`, cause);
  }
  const { protocol, username, password, search, hash } = url;
  if (!/^https?:$/.test(protocol) || username + password + search + hash !== "") {
    throw invalidArgument(`baseUrl is not usable; ${expected}`);
  }
  return url.href.replace(/\/+$/, "");
}

/** fetch takes no bytes that other threads can change. */
function sendable(content: string | Uint8Array): string | Uint8Array<ArrayBuffer> {
  if (typeof content === "string") return content;
  return content.buffer instanceof ArrayBuffer ? (content as Uint8Array<ArrayBuffer>) : content.slice();
}
