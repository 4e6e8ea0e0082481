import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createDeferred } from "../helpers/deferred.js";
import { told } from "../helpers/secrets.js";

/** A span as OTLP has it in JSON. */
export interface SentSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly status: { readonly code?: number };
  readonly attributes: Readonly<Record<string, string | number>>;
}

type Attribute = { key: string; value: Record<string, string | number> };
type Sent = {
  resourceSpans: {
    resource: { attributes: Attribute[] };
    scopeSpans: { spans: (Omit<SentSpan, "attributes"> & { attributes: Attribute[] })[] }[];
  }[];
};

/** A collector of OpenTelemetry's on 127.0.0.1 that takes OTLP over HTTP as JSON. */
export async function startCollector() {
  const spans: SentSpan[] = [];
  const paths = new Set<string>();
  let resource: SentSpan["attributes"] = {};
  const server = createServer(async (request, response) => {
    paths.add(request.url ?? "");
    let body = "";
    for await (const piece of request.setEncoding("utf8")) body += piece;
    told(body);
    for (const of of (JSON.parse(body) as Sent).resourceSpans) {
      resource = plain(of.resource.attributes);
      for (const span of of.scopeSpans.flatMap((scope) => scope.spans)) {
        spans.push({ ...span, attributes: plain(span.attributes) });
      }
    }
    response.setHeader("content-type", "application/json").end("{}");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    variables: variablesFor((server.address() as AddressInfo).port),
    /** What has come in; all there is once the service was stopped. */
    spans,
    paths,
    resource: () => resource,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** A collector that takes requests and answers none. */
export async function startSilentCollector() {
  const asked = createDeferred();
  const server = createServer(() => asked.resolve()).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    variables: variablesFor((server.address() as AddressInfo).port),
    asked: asked.promise,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** What has a service send its traces to this port as JSON, and each batch at once. */
export function variablesFor(port: number): Record<string, string> {
  return {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    OTEL_BSP_SCHEDULE_DELAY: "10",
  };
}

function plain(attributes: readonly Attribute[]): SentSpan["attributes"] {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0] ?? ""]));
}
