import { SpanStatusCode, trace } from "@opentelemetry/api";
import { NodeSDK, tracing } from "@opentelemetry/sdk-node";
import { afterEach } from "vitest";
import { told } from "../helpers/secrets.js";

const exporter = new tracing.InMemorySpanExporter();
const sdk = new NodeSDK({
  spanProcessors: [new tracing.SimpleSpanProcessor(exporter)],
  metricReaders: [],
  logRecordProcessors: [],
  autoDetectResources: false,
});
sdk.start();
afterEach(() => exporter.reset());

export const tracer = trace.getTracer("test");

/** Every span that has ended in this test, in that order. */
export function spans() {
  return exporter.getFinishedSpans().map((span) => {
    told(span);
    return {
      name: span.name,
      kind: span.kind,
      traceId: span.spanContext().traceId,
      id: span.spanContext().spanId,
      parentId: span.parentSpanContext?.spanId,
      attributes: span.attributes,
      isError: span.status.code === SpanStatusCode.ERROR,
    };
  });
}
