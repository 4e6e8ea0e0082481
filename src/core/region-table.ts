import { Capacity, type RegistryLimits } from "./capacity.js";
import { ChangeLog, type Outcome } from "./change-log.js";
import type { RegionState, RegionStatus, RegistryChange, RegistryObserver } from "./region.js";
import { RegionList } from "./region-list.js";
import type { Origin, Registration } from "./registration.js";

const stateAfter = {
  registered: "ready",
  draining: "draining",
  unregistered: "gone",
  close_failed: "close_failed",
} as const satisfies Record<RegistryChange["kind"], RegionState | "gone">;

export interface RegionTableOptions {
  readonly observers: readonly RegistryObserver[];
  readonly limits: RegistryLimits;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly onObserverError: (error: unknown, change: RegistryChange) => void;
}

/** Who has which name, and what is shown of it: it changes by {@link commit} alone. */
export class RegionTable {
  readonly #byName = new Map<string, Registration>();
  readonly #list = new RegionList();
  readonly #changes: ChangeLog;
  readonly #capacity: Capacity;
  readonly #now: () => number;
  readonly #onObserverError: RegionTableOptions["onObserverError"];

  constructor(options: RegionTableOptions) {
    this.#changes = new ChangeLog(options.observers);
    this.#capacity = new Capacity(options.limits);
    this.#now = options.now;
    this.#onObserverError = options.onObserverError;
  }

  get revision(): bigint {
    return this.#changes.revision;
  }

  /** Resolves once the next change is visible. */
  nextChange(): Promise<void> {
    return this.#changes.next();
  }

  /** Who has the name, visible or not. */
  get(name: string): Registration | undefined {
    return this.#byName.get(name);
  }

  /** Everyone who has a name at this moment. */
  all(): Registration[] {
    return [...this.#byName.values()];
  }

  statuses(): readonly RegionStatus[] {
    return this.#list.statuses();
  }

  /** Takes the name; nobody sees it yet. Throws RESOURCE_EXHAUSTED if that is one region too many. */
  reserve(registration: Registration): void {
    this.#capacity.take(registration, this.#byName.size);
    this.#byName.set(registration.name, registration);
  }

  /** Frees a name of which no observer was told. */
  free(registration: Registration): void {
    registration.enter("gone");
    this.#remove(registration);
  }

  /** Counts a pin that came (1) or went (-1). */
  countPin(registration: Registration, by: 1 | -1): void {
    registration.pins += by;
    this.#list.replace(registration.status);
  }

  /**
   * Tells the observers, then shows the change. Only `registered` can be refused by an observer, or be called
   * off because the register was abandoned before its turn came.
   */
  commit(
    registration: Registration,
    kind: RegistryChange["kind"],
    { context, startedAt }: Origin,
    cause?: unknown,
  ): Outcome | Promise<Outcome> {
    const revocable = kind === "registered";
    const state = stateAfter[kind];
    const outcome = this.#changes.commit({
      revocable,
      describe: (revision) => {
        if (revocable && !registration.beginCommit()) return null;
        registration.registeredAt ??= this.#now();
        return {
          kind,
          region: state === "gone" ? registration.status : registration.statusAs(state),
          revision,
          context,
          durationMs: performance.now() - startedAt,
          ...(cause !== undefined && { cause }),
        };
      },
      apply: (change) => this.#apply(registration, state, change.region),
    });
    if (revocable) return outcome;
    return outcome instanceof Promise ? outcome.then((done) => this.#report(done)) : this.#report(outcome);
  }

  #apply(registration: Registration, state: RegionState | "gone", status: RegionStatus): void {
    const wasVisible = registration.state !== "registering";
    registration.enter(state, status);
    if (state === "gone") this.#remove(registration);
    if (state !== "gone") {
      if (wasVisible) this.#list.replace(registration.status);
      else this.#list.add(registration.status);
    } else if (wasVisible) this.#list.remove(registration.name);
  }

  #remove(registration: Registration): void {
    this.#byName.delete(registration.name);
    this.#capacity.giveBack(registration);
  }

  #report(outcome: Outcome): Outcome {
    const { change, refusal } = outcome;
    if (change !== null && refusal !== null) this.#onObserverError(refusal.error, change);
    return outcome;
  }
}
