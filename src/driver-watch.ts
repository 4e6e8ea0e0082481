import type { Readiness } from "./core/face-context.js";
import type { Log } from "./log.js";
import type { SelectedDriver } from "./native/driver-selection.js";

/** Tells readiness from the driver's health, and logs each turn of it once. */
export class DriverWatch {
  readonly #driver: SelectedDriver;
  readonly #log: Log;
  #told: SelectedDriver["health"]["state"] = "starting";

  constructor(driver: SelectedDriver, log: Log) {
    this.#driver = driver;
    this.#log = log;
  }

  /** Whether the driver can be used now. While it cannot, asking makes it look again in the background. */
  readiness(): Exclude<Readiness, "exiting"> {
    this.#tellTurn();
    if (this.#driver.health.state === "usable") return "ready";
    // A driver that is lost or not there yet is looked for by this call; it limits by itself how often.
    const tellTurn = () => this.#tellTurn();
    this.#driver.devices().then(tellTurn, tellTurn);
    return "not_ready";
  }

  /** The driver's kind, or why there is none. */
  describe(): string {
    const { kind, health } = this.#driver;
    if (kind !== null) return kind;
    return health.state === "unusable" ? `unavailable: ${health.reason}` : "starting";
  }

  #tellTurn(): void {
    const { health, kind, description } = this.#driver;
    if (health.state === this.#told) return;
    this.#told = health.state;
    if (health.state === "usable") {
      this.#log.info({ driver: kind, ...description }, "CUDA driver is usable");
    } else if (health.state === "unusable") {
      this.#log.warn(
        { reason: health.reason },
        "no usable CUDA driver: every register is refused until there is one",
      );
    }
  }
}
