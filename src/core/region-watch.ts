import type { Clock } from "./clock.js";
import type { ExporterWatch } from "./exporter.js";
import * as refusals from "./refusals.js";
import type { ChangeReason } from "./region.js";
import { journalRetryMs } from "./region-records.js";
import type { Registration } from "./registration.js";

export interface RegionWatchOptions {
  readonly clock: Clock;
  readonly exporters: ExporterWatch | undefined;
  /** How long a region outlives its exporter, in milliseconds. */
  readonly orphanGraceMs: number;
  /** Shows a region as one whose exporter has exited. */
  readonly orphan: (registration: Registration) => void;
  /** Unregisters a region. Rejects if it has to stay, for now. */
  readonly unregister: (registration: Registration, reason: ChangeReason) => Promise<void>;
}

/** What ends a region without anyone asking: its lease, and the end of its exporter. */
export class RegionWatch {
  readonly #options: RegionWatchOptions;

  constructor(options: RegionWatchOptions) {
    this.#options = options;
  }

  /** Begins to watch the exporter, if there is one. Rejects with FAILED_PRECONDITION if it is not as claimed. */
  async begin(registration: Registration): Promise<void> {
    const { exporter } = registration;
    if (exporter === null) return;
    const { exporters } = this.#options;
    if (exporters === undefined) throw refusals.exportersUnwatched();
    registration.stopWatching = await exporters.watch(exporter, () => {
      registration.isOrphan = true;
      if (registration.state === "ready") this.#orphan(registration);
    });
  }

  /** The region is ready: if its exporter has exited meanwhile it is an orphan at once. */
  becameReady(registration: Registration): void {
    if (registration.isOrphan) this.#orphan(registration);
  }

  /** Starts the lease anew, if it has one. */
  startLease(registration: Registration): void {
    const { leaseMs } = registration;
    if (leaseMs === null || registration.isUnwatched) return;
    registration.cancelLease?.();
    registration.leaseExpiresAt = this.#options.clock.now() + leaseMs;
    this.#endLeaseAfter(leaseMs, registration);
  }

  /** It should have ended for `reason` and could not, so that is tried again later; nothing if it did end. */
  endLater(registration: Registration, reason: ChangeReason): void {
    if (registration.isUnwatched || registration.cancelGrace !== undefined) return;
    this.#endAfter(journalRetryMs, registration, reason);
  }

  /** Nothing ends it any more by itself. */
  end(registration: Registration): void {
    registration.isUnwatched = true;
    registration.cancelLease?.();
    registration.cancelGrace?.();
    registration.stopWatching?.();
    registration.cancelLease = undefined;
    registration.cancelGrace = undefined;
    registration.stopWatching = undefined;
  }

  #orphan(registration: Registration): void {
    if (registration.isUnwatched) return;
    this.#options.orphan(registration);
    if (registration.cancelGrace !== undefined) return;
    this.#endAfter(this.#options.orphanGraceMs, registration, "exporter_exited");
  }

  #endLeaseAfter(ms: number, registration: Registration): void {
    registration.cancelLease = this.#options.clock.after(ms, () => {
      registration.cancelLease = undefined;
      this.#options.unregister(registration, "lease_expired").catch(() => {
        // Where it did go, a close that failed is tried again by whoever unregisters it next.
        const isOver = registration.isUnwatched || registration.cancelLease !== undefined;
        if (!isOver) this.#endLeaseAfter(journalRetryMs, registration);
      });
    });
  }

  #endAfter(ms: number, registration: Registration, reason: ChangeReason): void {
    registration.cancelGrace = this.#options.clock.after(ms, () => {
      registration.cancelGrace = undefined;
      this.#options.unregister(registration, reason).catch(() => this.endLater(registration, reason));
    });
  }
}
