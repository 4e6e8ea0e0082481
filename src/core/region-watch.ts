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

  /** The region is ready: its lease starts, and if its exporter has exited meanwhile it is an orphan at once. */
  becameReady(registration: Registration): void {
    this.startLease(registration);
    if (registration.isOrphan) this.#orphan(registration);
  }

  /** Starts the lease anew, if it has one. */
  startLease(registration: Registration): void {
    const { leaseMs } = registration;
    if (leaseMs === null) return;
    const { clock } = this.#options;
    registration.cancelLease?.();
    registration.leaseExpiresAt = clock.now() + leaseMs;
    registration.cancelLease = clock.after(leaseMs, () => this.#end(registration, "lease_expired"));
  }

  /** Nothing ends it any more by itself. */
  end(registration: Registration): void {
    registration.cancelLease?.();
    registration.cancelGrace?.();
    registration.stopWatching?.();
    registration.cancelLease = undefined;
    registration.cancelGrace = undefined;
    registration.stopWatching = undefined;
  }

  #orphan(registration: Registration): void {
    const { clock, orphanGraceMs, orphan } = this.#options;
    orphan(registration);
    registration.cancelGrace = clock.after(orphanGraceMs, () => this.#end(registration, "exporter_exited"));
  }

  #end(registration: Registration, reason: ChangeReason): void {
    this.#options.unregister(registration, reason).catch(() => {
      // A close that failed is retried by whoever unregisters the region next.
      if (registration.state !== "ready" && registration.state !== "orphaned") return;
      registration.cancelLease = this.#options.clock.after(journalRetryMs, () =>
        this.#end(registration, reason),
      );
    });
  }
}
