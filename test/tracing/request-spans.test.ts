import { inspect } from "node:util";
import { SpanKind, trace } from "@opentelemetry/api";
import { expect, test } from "vitest";
import { traceRequests } from "../../src/tracing/request-spans.js";
import { keepSecret } from "../helpers/secrets.js";
import { spans, tracer } from "./recorded-spans.js";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const traceparent = `00-${traceId}-b7ad6b7169203331-01`;

function request(method: string | undefined, headers: Record<string, string> = {}) {
  return {
    requestId: "an-id",
    ...(method !== undefined && { method }),
    header: (name: string) => headers[name],
  };
}

const traceOperation = traceRequests(tracer);
const beginHttp = traceOperation({ protocol: "http", route: "/v2/{region_name}" });
const beginUnmatched = traceOperation({ protocol: "http", route: undefined });
const beginGrpc = traceOperation({ protocol: "grpc", service: "a.Service", method: "Call" });

test("a request over HTTP is a server's span with method, route, status and the request's id", () => {
  beginHttp(request("POST")).end(200);
  expect(spans()).toMatchObject([
    {
      name: "POST /v2/{region_name}",
      kind: SpanKind.SERVER,
      parentId: undefined,
      isError: false,
      attributes: {
        "http.request.method": "POST",
        "http.route": "/v2/{region_name}",
        "http.response.status_code": 200,
        "cudashm.request_id": "an-id",
      },
    },
  ]);
});

test("a path of no route gives a name of the method alone", () => {
  beginUnmatched(request("GET")).end(404);
  const [span] = spans();
  expect(span?.name).toBe("GET");
  expect(span?.attributes).not.toHaveProperty("http.route");
});

test("a method that HTTP does not know gives no name of its own", () => {
  beginUnmatched(request("PROPFIND")).end(405);
  expect(spans()).toMatchObject([{ name: "HTTP", attributes: { "http.request.method": "_OTHER" } }]);
});

test("a call over gRPC is a server's span with service, method and status", () => {
  beginGrpc(request(undefined)).end(0);
  expect(spans()).toMatchObject([
    {
      name: "a.Service/Call",
      kind: SpanKind.SERVER,
      isError: false,
      attributes: {
        "rpc.system": "grpc",
        "rpc.service": "a.Service",
        "rpc.method": "Call",
        "rpc.grpc.status_code": 0,
        "cudashm.request_id": "an-id",
      },
    },
  ]);
});

test.each([
  [beginHttp, 400, false],
  [beginHttp, 429, false],
  [beginHttp, 499, false],
  [beginHttp, 500, true],
  [beginHttp, 503, true],
  [beginGrpc, 3, false],
  [beginGrpc, 5, false],
  [beginGrpc, 8, false],
  [beginGrpc, 13, true],
  [beginGrpc, 14, true],
])("%o with status %i is an error: %s", (begin, status, isError) => {
  begin(request("GET")).end(status);
  const [span] = spans();
  expect(span?.isError).toBe(isError);
  expect(span?.attributes["error.type"]).toBe(isError ? String(status) : undefined);
});

test("the span is under the client's, with the state that the client gave", () => {
  const begun = beginHttp(request("GET", { traceparent, tracestate: "vendor=1" }));
  const state = begun.run(() => trace.getActiveSpan()?.spanContext().traceState?.get("vendor"));
  begun.end(200);
  expect(state).toBe("1");
  expect(spans()).toMatchObject([{ traceId, parentId: "b7ad6b7169203331" }]);
});

test.each(["", "00-", "nonsense", `00-${"0".repeat(32)}-b7ad6b7169203331-01`])(
  "the traceparent %j begins a trace of its own",
  (text) => {
    beginHttp(request("GET", { traceparent: text })).end(200);
    expect(spans()[0]).toMatchObject({ parentId: undefined });
  },
);

test("a client that samples nothing is not sampled here", () => {
  beginHttp(request("GET", { traceparent: traceparent.replace(/01$/, "00") })).end(200);
  expect(spans()).toEqual([]);
});

test("what a call shows to be let in is in no span", () => {
  const [secret, token] = ["s3cret-of-a-session", "s3cret-of-alice"];
  for (const text of [secret, token]) keepSecret("a header's secret", Buffer.from(text));
  const headers = { "cudashm-session": secret, authorization: `Bearer ${token}` };
  beginHttp(request("GET", headers)).end(401);
  beginGrpc(request(undefined, headers)).end(16);
  const ended = spans();
  expect(ended).toHaveLength(2);
  expect(inspect(ended, { depth: 10 })).not.toContain("s3cret");
});
