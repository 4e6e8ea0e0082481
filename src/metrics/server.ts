import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Registry } from "prom-client";

export interface ListenMetricsOptions {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** All metrics as Prometheus reads them. */
  readonly render: () => Promise<string>;
  /** Told why they could not be rendered; the client gets a fixed text. */
  readonly reportFault: (error: unknown) => void;
}

/** The metrics, listening. */
export interface MetricsServer {
  readonly address: { readonly host: string; readonly port: number };
  /** Stops accepting and waits for the answers on their way; cuts them when `deadline` aborts. */
  close(deadline: AbortSignal): Promise<void>;
}

const plain = "text/plain; charset=utf-8";

/** Serves GET /metrics. Rejects with the system's error if it cannot listen. */
export async function listenMetrics(options: ListenMetricsOptions): Promise<MetricsServer> {
  const server = createServer((request, response) => {
    if (closed !== undefined) response.shouldKeepAlive = false;
    void answer(request, response, options);
  });
  const listening = once(server, "listening");
  server.listen(options.port, options.host);
  await listening;
  const { address, port } = server.address() as AddressInfo;
  let closed: Promise<unknown> | undefined;
  return {
    address: { host: address, port },
    async close(deadline) {
      closed ??= once(server, "close");
      server.close();
      const cut = () => server.closeAllConnections();
      deadline.addEventListener("abort", cut, { once: true });
      if (deadline.aborted) cut();
      await closed;
      deadline.removeEventListener("abort", cut);
    },
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { render, reportFault }: ListenMetricsOptions,
): Promise<void> {
  const [path] = (request.url ?? "").split("?", 1);
  if (path !== "/metrics") return send(response, 404, plain, "Not Found: the metrics are at /metrics\n");
  if (request.method !== "GET" && request.method !== "HEAD") {
    response.setHeader("allow", "GET, HEAD");
    return send(response, 405, plain, "Method Not Allowed\n");
  }
  try {
    send(response, 200, Registry.PROMETHEUS_CONTENT_TYPE, await render());
  } catch (error) {
    reportFault(error);
    send(response, 500, plain, "internal error; the cause is in the service's log\n");
  }
}

function send(response: ServerResponse, status: number, contentType: string, body: string): void {
  response.writeHead(status, { "content-type": contentType, "content-length": Buffer.byteLength(body) });
  // Node leaves the body of an answer to HEAD out by itself.
  response.end(body);
}
