import { boolean, integer, text } from "./option.js";

/** What concerns the service as a whole. */
export const serviceOptions = {
  allowClientShm: {
    flag: "allow-client-shm",
    kind: boolean,
    default: true,
    group: "Service",
    help: "Let clients register memory.",
  },
  exitTimeoutSecs: {
    flag: "exit-timeout-secs",
    kind: integer(1, 2_000_000, "SECONDS"),
    default: 30,
    group: "Service",
    help: "How long a stop may take before the process ends with code 1.",
  },
  id: {
    flag: "id",
    kind: text("NAME"),
    default: "cudashm",
    group: "Service",
    help: "The name the service tells of itself.",
  },
} as const;
