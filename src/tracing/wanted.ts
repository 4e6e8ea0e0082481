import type { Environment } from "../config/read-options.js";

const exporterVariables = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/** Whether OpenTelemetry's standard variables ask for traces. */
export function isTracingWanted(env: Environment): boolean {
  if (textOf(env, "OTEL_SDK_DISABLED").toLowerCase() === "true") return false;
  const exporter = textOf(env, "OTEL_TRACES_EXPORTER");
  if (exporter !== "") return exporter !== "none";
  return exporterVariables.some((name) => textOf(env, name) !== "");
}

/** The variable, which is as good as unset while it is empty. */
function textOf(env: Environment, name: string): string {
  return env[name]?.trim() ?? "";
}
