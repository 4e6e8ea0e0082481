import { type DiagLogger, DiagLogLevel, diag } from "@opentelemetry/api";
import type { Log } from "../log.js";

/**
 * Has OpenTelemetry's own troubles logged as warnings. A collector that is away would be told of with every batch, so
 * a text is logged once until there is another.
 */
export function logDiagnostics(log: Log): void {
  let last = "";
  const warn = (text: string) => {
    const told = messageOf(text);
    if (told === last) return;
    last = told;
    log.warn(`OpenTelemetry: ${told}`);
  };
  const ignore = () => {};
  const logger: DiagLogger = { error: warn, warn, info: ignore, debug: ignore, verbose: ignore };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
}

/** An error comes as JSON of all that it has; its message is enough. */
function messageOf(text: string): string {
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    return typeof message === "string" ? message : text;
  } catch {
    return text;
  }
}
