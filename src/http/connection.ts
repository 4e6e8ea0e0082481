import type { ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { CallAbort, type CallSignal } from "../core/abort.js";
import { clientGone } from "./errors.js";

const isUnfinished = (answer: ServerResponse) => !answer.writableFinished && !answer.destroyed;

/** One client's connection: what is being answered on it, and whether the client is still there. */
export class HttpConnection {
  /** What it came by. */
  readonly by: "tcp" | "unix";
  readonly #socket: Duplex;
  /** In the order of their requests; more than one where the client does not wait for answers. */
  #answers: ServerResponse[] = [];
  #abort: CallAbort | undefined;
  #gone = false;

  constructor(socket: Duplex, by: "tcp" | "unix") {
    this.by = by;
    this.#socket = socket;
    socket.once("close", () => {
      this.#gone = true;
      this.#abort?.abort(clientGone());
    });
  }

  /** A request begins: `outgoing` is its answer. */
  begin(outgoing: ServerResponse): void {
    this.#answers = this.#answers.filter(isUnfinished);
    this.#answers.push(outgoing);
  }

  /** True if bytes written now would fall into the middle of an answer. */
  get isMidAnswer(): boolean {
    return this.#answers.some((answer) => answer.headersSent && isUnfinished(answer));
  }

  /**
   * Aborted when the client is gone or `shutdown` is aborted. One for all requests of the connection, made
   * when the first asks: a signal for each request would cost more than the rest of a small request.
   */
  signal(shutdown: AbortSignal): CallSignal {
    if (this.#abort !== undefined) return this.#abort;
    const abort = new CallAbort();
    this.#abort = abort;
    if (this.#gone) abort.abort(clientGone());
    else if (shutdown.aborted) abort.abort(shutdown.reason);
    else {
      const onShutdown = () => abort.abort(shutdown.reason);
      shutdown.addEventListener("abort", onShutdown, { once: true });
      this.#socket.once("close", () => shutdown.removeEventListener("abort", onShutdown));
    }
    return abort;
  }

  /** Closes the connection after the answers on their way, or at once if there are none. */
  closeWhenIdle(): void {
    const last = this.#answers.filter(isUnfinished).at(-1);
    if (last === undefined) {
      this.#socket.destroy();
      return;
    }
    if (!last.headersSent) last.shouldKeepAlive = false;
    last.once("close", () => this.#socket.destroy());
  }
}
