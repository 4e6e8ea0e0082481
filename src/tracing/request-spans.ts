import {
  type Attributes,
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type TextMapGetter,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type { TracedOperation, TracedRequest, TraceOperation } from "../core/request-tracer.js";

/** The methods that the conventions know; any other would make as many names as clients think of. */
const httpMethods = new Set(["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"]);

/** What the conventions for servers call an error: UNKNOWN, DEADLINE_EXCEEDED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS. */
const grpcFaults = new Set([2, 4, 12, 13, 14, 15]);

const headers: TextMapGetter<TracedRequest> = {
  get: (request, name) => request.header(name.toLowerCase()),
  keys: () => [],
};

/** A span for every request, named and described by OpenTelemetry's conventions, under the client's if it sent one. */
export function traceRequests(tracer: Tracer): TraceOperation {
  return (operation) => {
    const describe = operation.protocol === "http" ? describeHttp(operation) : describeGrpc(operation);
    return (request) => {
      const { name, attributes } = describe(request);
      const parent = propagation.extract(ROOT_CONTEXT, request, headers);
      const span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, parent);
      const within = trace.setSpan(parent, span);
      return {
        run: (work) => context.with(within, work),
        end: operation.protocol === "http" ? endHttp(span) : endGrpc(span),
      };
    };
  };
}

type Describe = (request: TracedRequest) => { name: string; attributes: Attributes };

function describeHttp({ route }: TracedOperation & { protocol: "http" }): Describe {
  return ({ method = "", requestId }) => {
    const known = httpMethods.has(method);
    const verb = known ? method : "HTTP";
    return {
      name: route === undefined ? verb : `${verb} ${route}`,
      attributes: {
        "http.request.method": known ? method : "_OTHER",
        "http.route": route,
        "cudashm.request_id": requestId,
      },
    };
  };
}

function describeGrpc({ service, method }: TracedOperation & { protocol: "grpc" }): Describe {
  const fixed = { "rpc.system": "grpc", "rpc.service": service, "rpc.method": method };
  const name = `${service}/${method}`;
  return ({ requestId }) => ({ name, attributes: { ...fixed, "cudashm.request_id": requestId } });
}

function endHttp(span: Span): (status: number) => void {
  return (status) => end(span, "http.response.status_code", status, status >= 500);
}

function endGrpc(span: Span): (status: number) => void {
  return (status) => end(span, "rpc.grpc.status_code", status, grpcFaults.has(status));
}

function end(span: Span, attribute: string, status: number, isFault: boolean): void {
  span.setAttribute(attribute, status);
  if (isFault) {
    span.setAttribute("error.type", String(status));
    span.setStatus({ code: SpanStatusCode.ERROR });
  }
  span.end();
}
