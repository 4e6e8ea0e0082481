import { abortError, listenForAbort } from "./abort.js";
import type { ChangeHistory, WatchEvent, WatchOptions } from "./change-history.js";
import type { Clock } from "./clock.js";
import { maySee, maySeeAll, type RegistryPolicy } from "./policy.js";
import * as refusals from "./refusals.js";
import type { CallContext, ListedRegion, RegionStatus } from "./region.js";
import { pageOf, type RegionPage, type RegionQuery } from "./region-query.js";
import type { RegionTable } from "./region-table.js";
import type { Registration } from "./registration.js";
import { assertWait } from "./waits.js";

export interface RegionViewsParts {
  readonly clock: Clock;
  readonly policy: RegistryPolicy;
  readonly table: RegionTable;
  readonly history: ChangeHistory;
}

/** What callers may see of the regions. */
export class RegionViews {
  readonly #clock: Clock;
  readonly #policy: RegistryPolicy;
  readonly #table: RegionTable;
  readonly #history: ChangeHistory;

  constructor(parts: RegionViewsParts) {
    this.#clock = parts.clock;
    this.#policy = parts.policy;
    this.#table = parts.table;
    this.#history = parts.history;
  }

  /** See the registry's `statuses`. */
  statuses(context: CallContext | undefined): RegionStatus[] {
    const isVisible = this.#visibleTo(context);
    return this.#table
      .blocks()
      .flatMap(({ regions }) => regions.filter(isVisible).map(({ status }) => status));
  }

  /** The visible region of that name. Throws NOT_FOUND, or UNAVAILABLE for one that is still being taken up. */
  find(name: string, context: CallContext | undefined): Registration {
    const registration = this.#table.get(name);
    if (registration === undefined) throw refusals.noSuchRegion(name);
    if (context !== undefined && !maySee(this.#policy, context, registration)) {
      throw refusals.noSuchRegion(name);
    }
    if (registration.state === "registering") {
      // Its owner is not to take it for lost because the service was restarted.
      throw registration.reason === "adopted" ? refusals.beingTakenUp(name) : refusals.noSuchRegion(name);
    }
    return registration;
  }

  /** See the registry's `list`. */
  async list(query: RegionQuery, context: CallContext): Promise<RegionPage> {
    const { revision } = this.#table;
    return { ...(await pageOf(this.#table.blocks(), query, this.#visibleTo(context))), revision };
  }

  /** See the registry's `watch`. */
  watch(options: WatchOptions, context: CallContext): AsyncIterable<WatchEvent> {
    return this.#history.watch(options, (region) => maySee(this.#policy, context, region), context.signal);
  }

  /** See the registry's `waitFor`. */
  async waitFor(name: string, waitMs: number, context: CallContext): Promise<RegionStatus> {
    assertWait(waitMs);
    const { signal } = context;
    let isOver = false;
    let wake = () => {};
    // Not a promise of the next change: where none comes, those of everyone who ever waited would be kept.
    let stopListeningForChange = () => {};
    const cancel = this.#clock.after(waitMs, () => {
      isOver = true;
      wake();
    });
    const stopListening = listenForAbort(signal, () => wake());
    try {
      for (;;) {
        const ready = this.#ready(name, context);
        if (ready !== null) return ready;
        if (signal?.aborted) throw abortError(signal);
        if (isOver) throw refusals.waitedInVain(name);
        await new Promise<void>((resolve) => {
          wake = resolve;
          stopListeningForChange = this.#table.onNextChange(resolve);
        });
      }
    } finally {
      cancel();
      stopListening();
      stopListeningForChange();
    }
  }

  #visibleTo(context: CallContext | undefined): (region: ListedRegion) => boolean {
    if (context === undefined || maySeeAll(this.#policy, context)) return () => true;
    return (region) => maySee(this.#policy, context, region);
  }

  #ready(name: string, context: CallContext): RegionStatus | null {
    const registration = this.#table.get(name);
    if (registration?.state !== "ready" || !maySee(this.#policy, context, registration)) return null;
    return registration.status;
  }
}
