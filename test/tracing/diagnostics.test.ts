import { diag } from "@opentelemetry/api";
import { expect, test } from "vitest";
import { createLog } from "../../src/log.js";
import { logDiagnostics } from "../../src/tracing/diagnostics.js";

test("OpenTelemetry's troubles are warnings with the error's message, each once until there is another", () => {
  const lines: unknown[] = [];
  const log = createLog("debug", { write: (line) => void lines.push(JSON.parse(line)) });
  logDiagnostics(log);
  const error = JSON.stringify({ stack: "Error: refused\n at somewhere", message: "refused" });
  for (const text of [error, error, "a setting is unknown", "null", error]) diag.error(text);
  diag.warn("odd");
  diag.info("nobody asked");
  diag.debug("nor for this");
  expect(lines).toMatchObject(
    ["refused", "a setting is unknown", "null", "refused", "odd"].map((text) => ({
      level: 40,
      msg: `OpenTelemetry: ${text}`,
    })),
  );
});
