import { collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { CudaDevice, CudaDriver } from "../core/driver.js";
import type { FaceContext } from "../core/face-context.js";
import { DriverMetrics, type RunningCall } from "./driver-metrics.js";
import { ObservedDriver } from "./observed-driver.js";
import { RegionMetrics } from "./region-metrics.js";
import { RequestMetrics } from "./request-metrics.js";

/** What the metrics need of the driver beyond its port. */
export interface MeasuredDriver extends CudaDriver {
  readonly description: { readonly driverVersion: string } | null;
  runningCalls(): readonly RunningCall[];
}

/** Every metric of a service. Names and meanings: docs/metrics.md. */
export class ServiceMetrics {
  /** Holds every metric; `register` is what prom-client calls such a thing. */
  readonly register = new Registry();
  /** The driver to give to the registry: it counts what it is asked for. */
  readonly driver: CudaDriver;
  readonly regions: RegionMetrics;
  readonly requests: RequestMetrics;
  readonly #measured: MeasuredDriver;
  readonly #calls: DriverMetrics;
  readonly #info: Gauge<"version" | "driver" | "driver_version">;
  readonly #ready: Gauge;
  readonly #live: Gauge;
  readonly #now: () => number;

  /** `now` is milliseconds since the epoch; for tests. */
  constructor(driver: MeasuredDriver, now: () => number = Date.now) {
    const registers = [this.register];
    this.#measured = driver;
    this.#now = now;
    this.#info = new Gauge({
      name: "cudashm_info",
      help: "Always 1: the service's version, its driver and the CUDA version that this offers",
      labelNames: ["version", "driver", "driver_version"],
      registers,
    });
    this.#ready = new Gauge({
      name: "cudashm_ready",
      help: "1 while registers can succeed, as /v2/health/ready tells; else 0",
      registers,
    });
    this.#live = new Gauge({
      name: "cudashm_live",
      help: "0 once the service has to be restarted, as /v2/health/live tells; else 1",
      registers,
    });
    this.regions = new RegionMetrics(this.register);
    this.#calls = new DriverMetrics(this.register);
    this.requests = new RequestMetrics(this.register);
    this.driver = new ObservedDriver(driver, this.#calls);
    collectDefaultMetrics({ register: this.register });
  }

  /** All metrics as Prometheus reads them, of now. */
  async render(face: FaceContext): Promise<string> {
    const driver = this.#measured;
    const kind = driver.kind ?? "none";
    const devices = await this.#devices();
    this.#info.reset();
    this.#info.set(
      {
        version: face.info.version,
        driver: kind,
        driver_version: driver.description?.driverVersion ?? "none",
      },
      1,
    );
    this.#ready.set(face.readiness() === "ready" ? 1 : 0);
    this.#live.set(face.isLive?.() === false ? 0 : 1);
    await this.regions.update(kind, devices, face.registry.blocks(), this.#now());
    this.#calls.update(kind, devices, driver.runningCalls());
    this.requests.update();
    return this.register.metrics();
  }

  /** The devices a usable driver has told of already: a scrape must neither start a driver nor wait for one. */
  async #devices(): Promise<readonly CudaDevice[]> {
    if (this.#measured.health.state !== "usable") return [];
    return this.#measured.devices().catch(() => []);
  }
}
