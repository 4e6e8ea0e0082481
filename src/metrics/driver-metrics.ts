import { Counter, Gauge, type Registry } from "prom-client";
import type { CudaDevice } from "../core/driver.js";
import { DurationHistogram, type Durations } from "./duration-histogram.js";
import type { DriverCall, DriverCallObserver } from "./observed-driver.js";

/** A call that the driver has not answered yet. */
export interface RunningCall {
  readonly runningMs: number;
}

/** The metrics of the driver's calls, and of what it has mapped. */
export class DriverMetrics implements DriverCallObserver {
  readonly #mapped = new Map<number, { mappings: number; bytes: bigint }>();
  readonly #durations = new DurationHistogram(
    "cudashm_driver_call_duration_seconds",
    "Time of the driver's opens and closes, their wait for a turn included, whether they succeed or not",
    ["call", "device"],
  );
  /** The same by device, since to look labels up takes as long as to open a handle. */
  readonly #durationsOf = { open: new Map<number, Durations>(), close: new Map<number, Durations>() };
  readonly #errors: Counter<"call" | "error">;
  readonly #mappings: Gauge<"device" | "kind">;
  readonly #mappedBytes: Gauge<"device" | "kind">;
  readonly #running: Gauge;
  readonly #longest: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#mappings = new Gauge({
      name: "cudashm_mappings",
      help: "Handles that are open; regions on one handle share a mapping",
      labelNames: ["device", "kind"],
      registers,
    });
    this.#mappedBytes = new Gauge({
      name: "cudashm_mapped_bytes",
      help: "Bytes of the allocations that are mapped, each counted once",
      labelNames: ["device", "kind"],
      registers,
    });
    registry.registerMetric(this.#durations.asMetric());
    this.#errors = new Counter({
      name: "cudashm_driver_errors_total",
      help: "Calls that CUDA refused, by the name of its error",
      labelNames: ["call", "error"],
      registers,
    });
    this.#running = new Gauge({
      name: "cudashm_driver_calls_running",
      help: "Calls that the driver has not answered yet",
      registers,
    });
    this.#longest = new Gauge({
      name: "cudashm_driver_longest_call_seconds",
      help: "For how long the driver has not answered the oldest of them; 0 if there is none",
      registers,
    });
  }

  ended(call: "open" | "close", deviceId: number, ms: number): void {
    const ofCall = this.#durationsOf[call];
    let durations = ofCall.get(deviceId);
    if (durations === undefined) {
      durations = this.#durations.of({ call, device: String(deviceId) });
      ofCall.set(deviceId, durations);
    }
    durations.observe(ms);
  }

  refused(call: DriverCall, cudaError: string): void {
    this.#errors.inc({ call, error: cudaError });
  }

  mapped(deviceId: number, byteSize: bigint, by: 1 | -1): void {
    const mapped = this.#mapped.get(deviceId) ?? { mappings: 0, bytes: 0n };
    mapped.mappings += by;
    mapped.bytes += byteSize * BigInt(by);
    this.#mapped.set(deviceId, mapped);
  }

  /** Brings what the registry tells up to date. */
  update(kind: string, devices: readonly CudaDevice[], running: readonly RunningCall[]): void {
    const byDevice = new Map(devices.map(({ ordinal }) => [ordinal, { mappings: 0, bytes: 0n }]));
    for (const [ordinal, mapped] of this.#mapped) byDevice.set(ordinal, mapped);
    this.#mappings.reset();
    this.#mappedBytes.reset();
    for (const [device, { mappings, bytes }] of byDevice) {
      this.#mappings.set({ device, kind }, mappings);
      this.#mappedBytes.set({ device, kind }, Number(bytes));
    }
    this.#running.set(running.length);
    this.#longest.set(Math.max(0, ...running.map(({ runningMs }) => runningMs)) / 1000);
  }
}
