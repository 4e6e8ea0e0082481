import { randomUUID } from "node:crypto";
import { createServer, type ServerOptions, type ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { type Listeners, type ListenOptions, openListeners } from "../listen/listeners.js";
import type { HttpApp } from "./app.js";
import { BodyDrain } from "./body-drain.js";
import { HttpConnection } from "./connection.js";
import { parserStatuses } from "./errors.js";
import { NodeExchange, RequestMessage } from "./node-exchange.js";

export interface ListenHttpOptions extends ListenOptions {
  readonly bodyDrain?: BodyDrain;
  /** How long a request may take to arrive; Node's own limits where left out. */
  readonly timeouts?: Pick<
    ServerOptions,
    "headersTimeout" | "requestTimeout" | "connectionsCheckingInterval"
  >;
}

/** A server that listens. */
export interface HttpServer {
  readonly address: Listeners["address"];
  /**
   * Stops accepting, lets answers on their way end, and resolves when the last connection is closed; what is
   * still open when `deadline` is aborted is cut. The second call waits for the first.
   */
  close(deadline: AbortSignal): Promise<void>;
}

/** Longer than the pools of common clients and proxies keep a connection, so that they close it first. */
const keepAliveTimeoutMs = 75_000;

/** How long a connection that is one too many may take to read that. */
const refusedConnectionMs = 1000;

/** Serves `app`. Rejects with UnixSocketError or the system's error, listening on nothing, if it cannot. */
export async function listenHttp(app: HttpApp, options: ListenHttpOptions): Promise<HttpServer> {
  const connections = new Map<Duplex, HttpConnection>();
  const drain = options.bodyDrain ?? new BodyDrain();
  let closing: Promise<void> | undefined;

  // The process's own Request and Response stay as they are: answers are written to the socket, so nothing
  // would be gained, and whoever else runs in the process would get the adapter's. Bodies are ours to drain.
  const respond = getRequestListener(
    (request, env) => {
      const { incoming, outgoing } = env as HttpBindings;
      const connection = connections.get(incoming.socket) ?? track(incoming.socket);
      connection.begin(outgoing);
      return app.fetch(request, new NodeExchange(incoming as RequestMessage, outgoing, connection, drain));
    },
    { overrideGlobalObjects: false, autoCleanupIncoming: false },
  );

  function track(socket: Duplex, by: "tcp" | "unix" = "tcp"): HttpConnection {
    const connection = new HttpConnection(socket, by);
    connections.set(socket, connection);
    socket.once("close", () => connections.delete(socket));
    return connection;
  }

  function serve(incoming: RequestMessage, outgoing: ServerResponse): void {
    // The adapter makes a URL of these two, which folds some and refuses others; we look at neither there.
    incoming.target = incoming.url ?? "";
    incoming.host = incoming.headers.host;
    incoming.url = "/";
    incoming.headers.host = "localhost";
    if (closing !== undefined) outgoing.shouldKeepAlive = false;
    void respond(incoming, outgoing);
  }

  const server = createServer({
    ...options.timeouts,
    IncomingMessage: RequestMessage,
    requireHostHeader: false,
    keepAliveTimeout: keepAliveTimeoutMs,
  });
  server.on("request", serve);
  // A condition we do not know changes nothing about the request.
  server.on("checkExpectation", serve);
  server.on("connect", (_incoming, socket) => refuse(socket, 405, "Method Not Allowed"));
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    if (!socket.writable || connections.get(socket)?.isMidAnswer === true) socket.destroy();
    else refuse(socket, parserStatuses[error.code ?? ""] ?? 400, `malformed HTTP request: ${error.message}`);
  });

  const kind = { alpn: "http/1.1", allowHalfOpen: true, refuse: refuseConnection } as const;
  const listeners = await openListeners(options, kind, (socket, by) => {
    track(socket, by);
    server.emit("connection", socket);
  });
  // Has the server watch over its timeouts, as it does by itself where it listens itself.
  server.emit("listening");

  async function close(deadline: AbortSignal): Promise<void> {
    const closed = listeners.close();
    server.close();
    for (const connection of connections.values()) connection.closeWhenIdle();
    const cut = () => listeners.destroyConnections();
    deadline.addEventListener("abort", cut, { once: true });
    if (deadline.aborted) cut();
    await closed;
    deadline.removeEventListener("abort", cut);
  }

  return {
    address: listeners.address,
    close: (deadline) => {
      closing ??= close(deadline);
      return closing;
    },
  };
}

/** Answers what never became a request, and closes the connection. */
function refuse(socket: Duplex, status: number, text: string): void {
  socket.end(refusal(status, text), () => socket.destroy());
}

/** Tells a connection that is one too many, before it has asked for anything. */
function refuseConnection(socket: Duplex): void {
  const text =
    "there are as many connections as this service takes (--http-max-connections); try again later";
  socket.on("error", () => socket.destroy());
  // Closing with its request unread would break the connection, and with it the answer.
  socket.resume();
  socket.end(refusal(429, text, "X-Error-Code: RESOURCE_EXHAUSTED\r\n"));
  const timer = setTimeout(() => socket.destroy(), refusedConnectionMs);
  socket.once("close", () => clearTimeout(timer));
}

function refusal(status: number, text: string, headers = ""): string {
  const body = JSON.stringify({ error: text });
  return (
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${Buffer.byteLength(body)}\r\nX-Request-Id: ${randomUUID()}\r\n${headers}` +
    `Connection: close\r\n\r\n${body}`
  );
}
