import { boolean, integer, oneOf, optional, text } from "./option.js";

/** What concerns the log. */
export const logOptions = {
  logError: {
    flag: "log-error",
    kind: boolean,
    default: true,
    group: "Log",
    help: "Log faults of the service.",
  },
  logWarning: {
    flag: "log-warning",
    kind: boolean,
    default: true,
    group: "Log",
    help: "Log what may surprise: settings without effect, the emulated driver in place of a GPU's.",
  },
  logInfo: {
    flag: "log-info",
    kind: boolean,
    default: true,
    group: "Log",
    help: "Log start, stop and every change of the registry.",
  },
  logVerbose: {
    flag: "log-verbose",
    kind: integer(0, 9),
    default: 0,
    group: "Log",
    help: "1 and more log every request, and the steps of the stop.",
  },
  logFormat: {
    flag: "log-format",
    kind: oneOf("auto", "json", "pretty"),
    default: "auto",
    group: "Log",
    help: "json: one object a line. pretty: for people. auto: pretty on a terminal, else json.",
  },
  logFile: {
    flag: "log-file",
    kind: optional(text("PATH")),
    default: null,
    group: "Log",
    help: "Append the log to this file, rather than write it to standard output.",
  },
} as const;
