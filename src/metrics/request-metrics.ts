import { Counter, Gauge, type Registry } from "prom-client";
import type { Protocol } from "../core/region.js";
import type { ObserveOperation, OperationObserver, RequestOutcome } from "../core/request-observer.js";
import { DurationHistogram, type Durations } from "./duration-histogram.js";

/** Counts the requests of one operation; read when the metrics are asked for. */
class OperationCounts implements OperationObserver {
  readonly protocol: Protocol;
  readonly operation: string;
  readonly outcomes = new Map<RequestOutcome, number>([["OK", 0]]);
  inFlight = 0;
  readonly #durations: Durations;

  constructor(protocol: Protocol, operation: string, durations: Durations) {
    this.protocol = protocol;
    this.operation = operation;
    this.#durations = durations;
  }

  begin(): number {
    this.inFlight++;
    return performance.now();
  }

  end(startedAt: number, outcome: RequestOutcome): void {
    this.inFlight--;
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
    this.#durations.observe(performance.now() - startedAt);
  }
}

/** The metrics of requests, whichever face they come through. */
export class RequestMetrics {
  readonly #operations: OperationCounts[] = [];
  readonly #total: Counter<"protocol" | "operation" | "code">;
  readonly #inFlight: Gauge<"protocol">;
  readonly #durations = new DurationHistogram(
    "cudashm_request_duration_seconds",
    "Time from the start of a request to its answer",
    ["protocol", "operation"],
  );

  constructor(registry: Registry) {
    const registers = [registry];
    this.#total = new Counter({
      name: "cudashm_requests_total",
      help: "Requests answered, by how they ended: OK or the error's code",
      labelNames: ["protocol", "operation", "code"],
      registers,
    });
    this.#inFlight = new Gauge({
      name: "cudashm_requests_in_flight",
      help: "Requests that are not answered yet",
      labelNames: ["protocol"],
      registers,
    });
    registry.registerMetric(this.#durations.asMetric());
  }

  readonly observe: ObserveOperation = (protocol, operation) => {
    const durations = this.#durations.of({ protocol, operation });
    const counts = new OperationCounts(protocol, operation, durations);
    this.#operations.push(counts);
    return counts;
  };

  /** Brings what the registry tells up to date. */
  update(): void {
    this.#total.reset();
    this.#inFlight.reset();
    for (const { protocol, operation, outcomes, inFlight } of this.#operations) {
      for (const [code, count] of outcomes) this.#total.inc({ protocol, operation, code }, count);
      this.#inFlight.inc({ protocol }, inFlight);
    }
  }
}
