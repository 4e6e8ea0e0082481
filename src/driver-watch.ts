import type { Readiness } from "./core/face-context.js";
import type { Log } from "./log.js";
import type { SelectedDriver } from "./native/driver-selection.js";

export interface DriverWatchOptions {
  /** How long the service stays live once the driver is lost to this process, in milliseconds. */
  readonly livenessGraceMs: number;
  /** Milliseconds, monotonic; for tests. */
  readonly now?: () => number;
}

/** Tells readiness and liveness from the driver's health, and logs each turn of it once. */
export class DriverWatch {
  readonly #driver: SelectedDriver;
  readonly #log: Log;
  readonly #graceMs: number;
  readonly #now: () => number;
  #told: SelectedDriver["health"]["state"] = "starting";
  #lostAt: number | null = null;
  #toldEnd = false;
  #probing = false;

  constructor(driver: SelectedDriver, log: Log, { livenessGraceMs, now }: DriverWatchOptions) {
    this.#driver = driver;
    this.#log = log;
    this.#graceMs = livenessGraceMs;
    this.#now = now ?? (() => performance.now());
  }

  /** Whether the driver can be used now. While it cannot, asking makes it look again in the background. */
  readiness(): Exclude<Readiness, "exiting"> {
    this.#tellTurn();
    if (this.#driver.health.state === "usable") return "ready";
    // A driver that is not there yet is looked for by this call; it limits by itself how often.
    const tellTurn = () => this.#tellTurn();
    this.#driver.devices().then(tellTurn, tellTurn);
    return "not_ready";
  }

  /** False once the driver has been lost for so long that a supervisor should start another process. */
  isLive(): boolean {
    this.#tellTurn();
    if (this.#lostAt === null || this.#now() - this.#lostAt < this.#graceMs) return true;
    if (!this.#toldEnd)
      this.#log.error("no longer live: the CUDA driver is lost to this process; restart it");
    this.#toldEnd = true;
    return false;
  }

  /**
   * Has the driver answer something cheap, so that one that broke while nobody used it is noticed. `inUse` are
   * the devices with mappings: only those are asked for what needs a context. Does nothing while the last probe
   * is not answered, so a driver that hangs has one more call to answer and not one for every period.
   */
  async probe(inUse: readonly number[]): Promise<void> {
    if (this.#probing) return;
    this.#probing = true;
    try {
      await this.#driver.probe(inUse);
    } catch {
      // The driver's health has it, and with it the log.
    } finally {
      this.#probing = false;
      this.isLive();
    }
  }

  /** The driver's kind, or why there is none. */
  describe(): string {
    const { kind, health } = this.#driver;
    if (kind !== null) return kind;
    return health.state === "unusable" ? `unavailable: ${health.reason}` : "starting";
  }

  #tellTurn(): void {
    const { health, kind, description } = this.#driver;
    if (health.state === "unusable" && health.lost) this.#lostAt ??= this.#now();
    if (health.state === this.#told) return;
    this.#told = health.state;
    if (health.state === "usable") {
      this.#log.info({ driver: kind, ...description }, "CUDA driver is usable");
    } else if (health.state === "unusable") {
      this.#log.warn({ reason: health.reason }, "no usable CUDA driver: not ready until there is one");
    }
  }
}
