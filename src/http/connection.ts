import { setMaxListeners } from "node:events";
import type { ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { clientGone } from "./errors.js";

/** One client's connection: what is being answered on it, and whether the client is still there. */
export class HttpConnection {
  readonly #socket: Duplex;
  #answering: ServerResponse | undefined;
  #abort: AbortController | undefined;
  #gone = false;

  constructor(socket: Duplex) {
    this.#socket = socket;
    socket.once("close", () => {
      this.#gone = true;
      this.#abort?.abort(clientGone());
    });
  }

  /** A request begins: `outgoing` is its answer. */
  begin(outgoing: ServerResponse): void {
    this.#answering = outgoing;
  }

  /** True if bytes written now would fall into the middle of an answer. */
  get isMidAnswer(): boolean {
    const answering = this.#answering;
    return answering?.headersSent === true && !answering.writableFinished;
  }

  /**
   * Aborted when the client is gone or `shutdown` is aborted. One for all requests of the connection, made
   * when the first asks: a signal for each request would cost more than the rest of a small request.
   */
  signal(shutdown: AbortSignal): AbortSignal {
    if (this.#abort !== undefined) return this.#abort.signal;
    const abort = new AbortController();
    this.#abort = abort;
    setMaxListeners(0, abort.signal);
    if (this.#gone) abort.abort(clientGone());
    else if (shutdown.aborted) abort.abort(shutdown.reason);
    else {
      const onShutdown = () => abort.abort(shutdown.reason);
      shutdown.addEventListener("abort", onShutdown, { once: true });
      this.#socket.once("close", () => shutdown.removeEventListener("abort", onShutdown));
    }
    return abort.signal;
  }

  /** Closes the connection after the answer on its way, or at once if there is none. */
  closeWhenIdle(): void {
    const answering = this.#answering;
    if (answering === undefined || answering.writableFinished || answering.destroyed) {
      this.#socket.destroy();
      return;
    }
    if (!answering.headersSent) answering.shouldKeepAlive = false;
    answering.once("close", () => this.#socket.destroy());
  }
}
