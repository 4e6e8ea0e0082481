import { openSync } from "node:fs";
import { type DestinationStream, destination } from "pino";
import { UsageError } from "./config/usage-error.js";

export interface LogOutputOptions {
  /** Null is standard output. */
  readonly logFile: string | null;
  readonly logFormat: "auto" | "json" | "pretty";
  readonly isTerminal: boolean;
}

/**
 * Where the log goes. JSON is written without ever waiting for its reader and, whatever is left, when the process
 * ends; a reader 64 MiB behind loses lines. Lines for people are written one by one. Rejects with UsageError if the
 * file cannot be opened.
 */
export async function openLogOutput({
  logFile,
  logFormat,
  isTerminal,
}: LogOutputOptions): Promise<DestinationStream> {
  const fd = logFile === null ? 1 : openForAppending(logFile);
  const isPretty = logFormat === "pretty" || (logFormat === "auto" && logFile === null && isTerminal);
  if (!isPretty) return destination({ fd, sync: false, maxLength: 64 * 2 ** 20 });
  // Only for people at a terminal: nobody else pays for loading it.
  const { default: pretty } = await import("pino-pretty");
  return pretty({
    destination: fd,
    sync: true,
    colorize: isTerminal && logFile === null,
    translateTime: "SYS:yyyy-mm-dd HH:MM:ss.l",
  });
}

function openForAppending(path: string): number {
  try {
    return openSync(path, "a", 0o640);
  } catch (error) {
    throw new UsageError([`--log-file: the file cannot be opened for writing: ${(error as Error).message}`]);
  }
}
