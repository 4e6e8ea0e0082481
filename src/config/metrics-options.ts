import { boolean, hostAddress, port } from "./option.js";

/** What concerns the metrics alone. */
export const metricsOptions = {
  allowMetrics: {
    flag: "allow-metrics",
    kind: boolean,
    default: true,
    group: "Metrics",
    help: "Serve GET /metrics for Prometheus, on a port of its own.",
  },
  metricsAddress: {
    flag: "metrics-address",
    kind: hostAddress,
    default: "127.0.0.1",
    group: "Metrics",
    help: "Where the metrics listen.",
  },
  metricsPort: {
    flag: "metrics-port",
    kind: port,
    default: 8002,
    group: "Metrics",
    help: "Port of the metrics; 0 takes a free one, which the start-up line tells.",
  },
} as const;
