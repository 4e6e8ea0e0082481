import { expect, test } from "vitest";
import { isTracingWanted } from "../../src/tracing/wanted.js";

test.each([
  [{}, false],
  [{ OTEL_SERVICE_NAME: "a", OTEL_EXPORTER_OTLP_HEADERS: "a=b" }, false],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: "" }, false],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318" }, true],
  [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://127.0.0.1:4318/v1/traces" }, true],
  [{ OTEL_TRACES_EXPORTER: "otlp" }, true],
  [{ OTEL_TRACES_EXPORTER: "none", OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318" }, false],
  [{ OTEL_TRACES_EXPORTER: "otlp", OTEL_SDK_DISABLED: "TRUE" }, false],
  [{ OTEL_TRACES_EXPORTER: "otlp", OTEL_SDK_DISABLED: "false" }, true],
])("%j asks for traces: %s", (env, wanted) => {
  expect(isTracingWanted(env)).toBe(wanted);
});
