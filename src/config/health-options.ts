import { integer } from "./option.js";

/** What concerns the service's health. */
export const healthOptions = {
  livenessGraceSecs: {
    flag: "liveness-grace-secs",
    kind: integer(0, 2_000_000, "SECONDS"),
    default: 30,
    group: "Service",
    help: "How long the service stays live after the driver is lost to a fault that only a new process mends. Readiness goes off at once.",
  },
} as const;
