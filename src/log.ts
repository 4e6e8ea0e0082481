import { type DestinationStream, destination, type Logger, pino } from "pino";
import type { Fault } from "./core/face-context.js";
import type { RegistryChange } from "./core/region.js";

export type Log = Logger;
export type LogLevel = "debug" | "info" | "warn";

/** The log of the service: one JSON object a line. */
export function createLog(level: LogLevel, stream: DestinationStream): Log {
  return pino({ level, base: null }, stream);
}

/**
 * Standard output, written without ever waiting for its reader and, whatever is left, when the process ends.
 * A reader 64 MiB behind loses lines.
 */
export function standardOutput(): DestinationStream {
  return destination({ fd: 1, sync: false, maxLength: 64 * 2 ** 20 });
}

/** Logs one change of the registry: a line with what, who, how long and how it ended. */
export function logChange(log: Log, change: RegistryChange): void {
  const { region, context } = change;
  const line = {
    change: change.kind,
    region: region.name,
    deviceId: region.deviceId,
    // Never above the allocation's size, so a double holds it exactly.
    byteSize: Number(region.byteSize),
    protocol: context.protocol,
    owner: context.owner,
    requestId: context.requestId,
    durationMs: Math.round(change.durationMs * 1000) / 1000,
    revision: String(change.revision),
  };
  if (change.kind === "close_failed") {
    log.error({ ...line, outcome: "failed", err: change.cause }, "region could not be closed");
  } else if (change.cause !== undefined) {
    log.warn({ ...line, outcome: "undone", err: change.cause }, "register of the region was undone");
  } else {
    log.info({ ...line, outcome: "ok" }, changeText[change.kind]);
  }
}

const changeText = {
  registered: "region registered",
  draining: "region unregistered, waits for its last pin",
  unregistered: "region unregistered",
} as const satisfies Record<Exclude<RegistryChange["kind"], "close_failed">, string>;

/** Logs a fault of ours; the client was told no more than that there was one. */
export function logFault(log: Log, fault: Fault): void {
  log.error(
    { err: fault.error, requestId: fault.requestId, protocol: fault.protocol },
    "request failed by a fault of the service",
  );
}
