import { Counter, Gauge, type Registry } from "prom-client";
import type { CudaDevice } from "../core/driver.js";
import { inSlices } from "../core/event-loop.js";
import type { Protocol, RegistryChange } from "../core/region.js";
import type { RegionRegistry } from "../core/registry.js";

type Blocks = ReturnType<RegionRegistry["blocks"]>;

/** What the regions of one device and state come to. */
interface Sum {
  regions: number;
  bytes: number;
}

/** The metrics of the regions there are, and of how they come and go. */
export class RegionMetrics {
  readonly #regions: Gauge<"device" | "kind" | "state">;
  readonly #bytes: Gauge<"device" | "kind" | "state">;
  readonly #pins: Gauge<"device" | "kind">;
  readonly #oldest: Gauge;
  readonly #changes: Counter<"change" | "protocol">;
  /** What is told by `changes` when the metrics are asked for: its own additions cost some microseconds each. */
  readonly #counts = new Map<RegistryChange["kind"], Map<Protocol, number>>();

  constructor(registry: Registry) {
    const registers = [registry];
    this.#regions = new Gauge({
      name: "cudashm_regions",
      help: "Regions there are; draining ones wait for their last pin, close_failed ones for another unregister",
      labelNames: ["device", "kind", "state"],
      registers,
    });
    this.#bytes = new Gauge({
      name: "cudashm_region_bytes",
      help: "Bytes of the regions, as they were registered",
      labelNames: ["device", "kind", "state"],
      registers,
    });
    this.#pins = new Gauge({
      name: "cudashm_pins",
      help: "Holds on regions by those who use the memory at this moment",
      labelNames: ["device", "kind"],
      registers,
    });
    this.#oldest = new Gauge({
      name: "cudashm_oldest_region_age_seconds",
      help: "How long ago the oldest region was registered; 0 if there is none",
      registers,
    });
    this.#changes = new Counter({
      name: "cudashm_region_changes_total",
      help: "Regions registered, unregistered, draining and those whose close failed, however many a request changed",
      labelNames: ["change", "protocol"],
      registers,
    });
  }

  /** Counts a change of the registry. */
  readonly onChange = ({ kind, context: { protocol } }: RegistryChange): void => {
    const counts = this.#counts.get(kind) ?? new Map<Protocol, number>();
    this.#counts.set(kind, counts.set(protocol, (counts.get(protocol) ?? 0) + 1));
  };

  /** Brings what the registry tells up to date; `now` is milliseconds since the epoch. */
  async update(kind: string, devices: readonly CudaDevice[], blocks: Blocks, now: number): Promise<void> {
    const sums = new Map<number, Map<string, Sum>>();
    const pins = new Map<number, number>();
    const sumOf = (device: number, state: string): Sum => {
      const known = sums.get(device)?.get(state);
      if (known !== undefined) return known;
      const sum = { regions: 0, bytes: 0 };
      sums.set(device, (sums.get(device) ?? new Map<string, Sum>()).set(state, sum));
      return sum;
    };
    // A device without regions has zeros, not a gap.
    for (const { ordinal } of devices) {
      sumOf(ordinal, "ready");
      pins.set(ordinal, 0);
    }
    let oldest = now;
    await inSlices(blocks, ({ regions }) => {
      for (const { deviceId, state, byteSize, pins: held, registeredAt = now } of regions) {
        if (state === "gone") continue;
        const sum = sumOf(deviceId, state);
        sum.regions++;
        sum.bytes += Number(byteSize);
        if (held > 0) pins.set(deviceId, (pins.get(deviceId) ?? 0) + held);
        oldest = Math.min(oldest, registeredAt);
      }
      return true;
    });
    for (const metric of [this.#regions, this.#bytes, this.#pins, this.#changes]) metric.reset();
    for (const [change, counts] of this.#counts) {
      for (const [protocol, count] of counts) this.#changes.inc({ change, protocol }, count);
    }
    for (const [device, states] of sums) {
      for (const [state, sum] of states) {
        this.#regions.set({ device, kind, state }, sum.regions);
        this.#bytes.set({ device, kind, state }, sum.bytes);
      }
    }
    for (const [device, count] of pins) this.#pins.set({ device, kind }, count);
    this.#oldest.set((now - oldest) / 1000);
  }
}
