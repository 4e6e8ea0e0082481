import { type DestinationStream, type Logger, pino } from "pino";
import type { Fault } from "./core/face-context.js";
import type { RegistryChange } from "./core/region.js";
import type { ObserveOperation } from "./core/request-observer.js";

export type Log = Logger;
export type LogLevel = "debug" | "info" | "warn" | "error" | "fatal";

/** Which lines are written. Each kind is switched by itself, as Triton's flags have it. */
export interface LogSwitches {
  readonly logError: boolean;
  readonly logWarning: boolean;
  readonly logInfo: boolean;
  readonly logVerbose: number;
}

/** The log of the service: one JSON object a line, of `level` and above but for those in `silent`. */
export function createLog(level: LogLevel, stream: DestinationStream, silent: readonly LogLevel[] = []): Log {
  const numbers = new Set(silent.map((name) => pino.levels.values[name]));
  return pino(
    {
      level,
      base: null,
      ...(numbers.size > 0 && {
        hooks: {
          logMethod(line, write, number) {
            if (!numbers.has(number)) write.apply(this, line);
          },
        },
      }),
    },
    stream,
  );
}

/** The log that the switches ask for. What ends the process badly is written in any case. */
export function createSwitchedLog(switches: LogSwitches, stream: DestinationStream): Log {
  const kinds = [
    { level: "debug", on: switches.logVerbose > 0 },
    { level: "info", on: switches.logInfo },
    { level: "warn", on: switches.logWarning },
    { level: "error", on: switches.logError },
    { level: "fatal", on: true },
  ] as const;
  const lowest = kinds.findIndex(({ on }) => on);
  const silent = kinds.slice(lowest).filter(({ on }) => !on);
  return createLog(
    kinds[lowest]?.level ?? "fatal",
    stream,
    silent.map(({ level }) => level),
  );
}

/** Logs one change of the registry: a line with what, who, how long and how it ended. */
export function logChange(log: Log, change: RegistryChange): void {
  const level = levelOf(change);
  // Before anything is made for a line that nobody wants.
  if (!log.isLevelEnabled(level)) return;
  const { region, context } = change;
  const wentWell = change.kind !== "close_failed" && change.cause === undefined;
  if (wentWell && !log.isLevelEnabled("info")) return;
  const line = {
    change: change.kind,
    region: region.name,
    deviceId: region.deviceId,
    // Never above the allocation's size, so a double holds it exactly.
    byteSize: Number(region.byteSize),
    protocol: context.protocol,
    owner: context.owner,
    reason: change.reason,
    requestId: context.requestId,
    durationMs: toMicroseconds(change.durationMs),
    revision: String(change.revision),
  };
  if (change.kind === "close_failed") {
    log[level]({ ...line, outcome: "failed", err: change.cause }, "region could not be closed");
  } else if (change.cause !== undefined) {
    log[level]({ ...line, outcome: "undone", err: change.cause }, "register of the region was undone");
  } else {
    log[level]({ ...line, outcome: "ok" }, changeText[change.kind]);
  }
}

function levelOf({ kind, cause }: RegistryChange): "error" | "warn" | "info" {
  if (kind === "close_failed") return "error";
  return cause === undefined ? "info" : "warn";
}

const changeText = {
  registered: "region registered",
  adopted: "region of an earlier run taken up",
  orphaned: "exporter of the region has exited",
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

/** Logs every request with how it ended, for `--log-verbose`. */
export function logRequests(log: Log): ObserveOperation {
  return (protocol, operation) => ({
    begin: () => performance.now(),
    end: (startedAt, code, requestId) => {
      const durationMs = toMicroseconds(performance.now() - startedAt);
      log.debug({ protocol, operation, code, requestId, durationMs }, "request answered");
    },
  });
}

/** Milliseconds with as many digits as mean something. */
function toMicroseconds(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
