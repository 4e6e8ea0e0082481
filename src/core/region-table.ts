import { Capacity, type RegistryLimits } from "./capacity.js";
import { ChangeLog, type Outcome } from "./change-log.js";
import type { Clock } from "./clock.js";
import type { Pin } from "./pin.js";
import type { RegionState, RegistryChange, RegistryObserver } from "./region.js";
import { type Block, RegionList } from "./region-list.js";
import type { Origin, Registration } from "./registration.js";

const stateAfter = {
  registered: "ready",
  adopted: "ready",
  orphaned: "orphaned",
  draining: "draining",
  unregistered: "gone",
  close_failed: "close_failed",
} as const satisfies Record<RegistryChange["kind"], RegionState | "gone">;

export interface RegionTableOptions {
  readonly observers: readonly RegistryObserver[];
  readonly limits: RegistryLimits;
  readonly clock: Clock;
  /** The number of the last change before this registry's first. */
  readonly revision: bigint;
  /** Told of each change as soon as it is visible. */
  readonly onVisible: (change: RegistryChange) => void;
  /** Told of a region as soon as it is ready, before anyone can do anything to it. */
  readonly onReady: (registration: Registration) => void;
  readonly onObserverError: (error: unknown, change: RegistryChange) => void;
}

/** Who has which name, and what is shown of it: it changes by {@link commit} alone. */
export class RegionTable {
  readonly #byName = new Map<string, Registration>();
  /** Those that are to take a name over from another. */
  readonly #successors = new Set<Registration>();
  readonly #bySession = new Map<string, Set<Registration>>();
  readonly #list = new RegionList<Registration>();
  readonly #changes: ChangeLog;
  readonly #capacity: Capacity;
  readonly #clock: Clock;
  readonly #onVisible: RegionTableOptions["onVisible"];
  readonly #onReady: RegionTableOptions["onReady"];
  readonly #onObserverError: RegionTableOptions["onObserverError"];

  constructor(options: RegionTableOptions) {
    this.#changes = new ChangeLog(options.observers, options.revision);
    this.#capacity = new Capacity(options.limits);
    this.#clock = options.clock;
    this.#onVisible = options.onVisible;
    this.#onReady = options.onReady;
    this.#onObserverError = options.onObserverError;
  }

  get revision(): bigint {
    return this.#changes.revision;
  }

  /** Resolves once the next change is visible. */
  nextChange(): Promise<void> {
    return this.#changes.next();
  }

  /** Calls `run` once the next change is visible, unless the returned function was called before. */
  onNextChange(run: () => void): () => void {
    return this.#changes.onNext(run);
  }

  /** Who has the name, visible or not. */
  get(name: string): Registration | undefined {
    return this.#byName.get(name);
  }

  /** Everyone who has a name at this moment, or is about to take one over. */
  all(): Registration[] {
    return [...this.#byName.values(), ...this.#successors];
  }

  /** Everyone of a session. */
  ofSession(id: string): Registration[] {
    return [...(this.#bySession.get(id) ?? [])];
  }

  /** Everyone who is visible, sorted by name: the same array until somebody comes or goes. */
  blocks(): readonly Block<Registration>[] {
    return this.#list.blocks();
  }

  /**
   * Takes the name, or, from `replaced`, the right to it; nobody sees it yet. Throws RESOURCE_EXHAUSTED if that is
   * one region too many.
   */
  reserve(registration: Registration, replaced?: Registration): void {
    this.#capacity.take(registration, this.#byName.size, replaced);
    if (replaced === undefined) this.#byName.set(registration.name, registration);
    else this.#successors.add(registration);
    if (registration.session !== null) this.#joinSession(registration.session, registration);
  }

  /** Frees a name of which no observer was told. */
  free(registration: Registration): void {
    registration.enter("gone", registration.reason);
    this.#remove(registration);
  }

  addPin(registration: Registration, pin: Pin): void {
    registration.addPin(pin, this.#clock.now());
  }

  removePin(registration: Registration, pin: Pin): void {
    registration.removePin(pin, this.#clock.now());
  }

  /**
   * Tells the observers, then shows the change. Only what makes a region can be refused by an observer, or be
   * called off because the register was abandoned before its turn came.
   */
  commit(
    registration: Registration,
    kind: RegistryChange["kind"],
    { context, startedAt, reason }: Origin,
    cause?: unknown,
  ): Outcome | Promise<Outcome> {
    const revocable = kind === "registered" || kind === "adopted";
    const state = stateAfter[kind];
    const outcome = this.#changes.commit({
      revocable,
      describe: (revision) => {
        if (revocable && !registration.beginCommit()) return null;
        // It may have been unregistered while other changes had their turns.
        if (kind === "orphaned" && registration.state !== "ready") return null;
        registration.registeredAt ??= this.#clock.now();
        return {
          kind,
          reason,
          region: registration.statusAs(state === "gone" ? registration.lastState : state, reason),
          revision,
          context,
          durationMs: performance.now() - startedAt,
          ...(cause !== undefined && { cause }),
        };
      },
      apply: (change) => this.#apply(registration, state, change),
    });
    if (revocable) return outcome;
    return outcome instanceof Promise ? outcome.then((done) => this.#report(done)) : this.#report(outcome);
  }

  #apply(registration: Registration, state: RegionState | "gone", change: RegistryChange): void {
    const wasVisible = registration.state !== "registering";
    registration.enter(state, change.reason);
    if (state === "gone") this.#remove(registration);
    if (state !== "gone" && !wasVisible) this.#list.add(registration);
    if (state === "gone" && wasVisible) this.#list.remove(registration.name);
    // What was never shown need not be told as gone.
    if (wasVisible || state !== "gone") this.#onVisible(change);
    if (state === "ready") this.#onReady(registration);
  }

  #remove(registration: Registration): void {
    const { name, session, successor } = registration;
    if (this.#byName.get(name) === registration) {
      if (successor === undefined) this.#byName.delete(name);
      else {
        this.#successors.delete(successor);
        this.#byName.set(name, successor);
      }
    }
    this.#successors.delete(registration);
    this.#capacity.giveBack(registration);
    if (session !== null) this.#leaveSession(session, registration);
  }

  #joinSession(id: string, registration: Registration): void {
    const members = this.#bySession.get(id);
    if (members === undefined) this.#bySession.set(id, new Set([registration]));
    else members.add(registration);
  }

  #leaveSession(id: string, registration: Registration): void {
    const members = this.#bySession.get(id);
    members?.delete(registration);
    if (members?.size === 0) this.#bySession.delete(id);
  }

  #report(outcome: Outcome): Outcome {
    const { change, refusal } = outcome;
    if (change !== null && refusal !== null) this.#onObserverError(refusal.error, change);
    return outcome;
  }
}
