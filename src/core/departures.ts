import { abortError, type CallSignal, listenForAbort, untilDoneOrAborted } from "./abort.js";
import type { Clock } from "./clock.js";
import { roomForAnother } from "./event-loop.js";
import { forEachBounded } from "./for-each-bounded.js";
import { isOwn, maySee, mayTouch, type RegistryPolicy } from "./policy.js";
import * as refusals from "./refusals.js";
import type { CallContext, ChangeReason } from "./region.js";
import type { RegionLifecycle } from "./region-lifecycle.js";
import type { RegionTable } from "./region-table.js";
import type { Origin, Registration } from "./registration.js";
import { assertWait } from "./waits.js";

/** Regions that one call unregisters at the same time. */
const unregisterAllConcurrency = 64;

/** How a region is unregistered by a caller who wants to know when its memory can be freed. */
export interface ReleaseOptions {
  /** Milliseconds to wait for the close, at most 5 minutes; not at all unless given. */
  readonly waitMs?: number | undefined;
  /** Whether to take it, after the wait, from whoever uses it. */
  readonly isForced?: boolean | undefined;
  /** The generation that is meant; whichever there is unless given. */
  readonly generation?: bigint | undefined;
}

/** What became of a region that was unregistered. */
export interface ReleaseOutcome {
  /**
   * Whether its mapping is closed, and with it the memory. If not, while nobody uses the region: others on the same
   * allocation keep it mapped.
   */
  readonly isClosed: boolean;
  readonly pins: number;
}

export interface DeparturesParts {
  readonly clock: Clock;
  readonly policy: RegistryPolicy;
  readonly table: RegionTable;
  readonly lifecycle: RegionLifecycle;
}

/** Lets regions go, one by one or many at once. */
export class Departures {
  readonly #clock: Clock;
  readonly #policy: RegistryPolicy;
  readonly #table: RegionTable;
  readonly #lifecycle: RegionLifecycle;

  constructor(parts: DeparturesParts) {
    this.#clock = parts.clock;
    this.#policy = parts.policy;
    this.#table = parts.table;
    this.#lifecycle = parts.lifecycle;
  }

  /** See the registry's `unregister`. */
  async unregister(name: string, context: CallContext): Promise<void> {
    const origin = begin(context);
    let registration = this.#table.get(name);
    while (registration?.replacing !== undefined) {
      await registration.replacing;
      registration = this.#table.get(name);
    }
    if (registration === undefined) return;
    this.#assertMayUnregister(registration, context);
    await this.#lifecycle.unregister(registration, origin);
  }

  /** See the registry's `release`. */
  async release(name: string, options: ReleaseOptions, context: CallContext): Promise<ReleaseOutcome> {
    const { waitMs, isForced = false, generation } = options;
    const { signal } = context;
    if (waitMs !== undefined) assertWait(waitMs);
    const origin = begin(context, isForced ? "forced" : "requested");
    let registration = this.#table.get(name);
    while (registration?.replacing !== undefined) {
      await registration.replacing;
      registration = this.#table.get(name);
    }
    if (registration === undefined) throw refusals.noSuchRegion(name);
    if (isForced && !mayTouch(context, registration)) throw refusals.notOwner(name);
    this.#assertMayUnregister(registration, context);
    if (generation !== undefined && registration.generation !== generation) {
      throw refusals.otherGeneration(name, generation, registration.generation);
    }
    await this.#lifecycle.unregister(registration, origin);
    if (hasGone(registration)) return { isClosed: registration.isMappingClosed, pins: 0 };
    registration.refusesPins = true;
    if (waitMs !== undefined) {
      await this.#untilEnded(registration, waitMs, signal);
      // Whoever leaves before the wait is over has not asked for force yet.
      if (signal?.aborted && !hasGone(registration)) throw abortError(signal);
    }
    if (registration.state === "draining" && isForced) {
      const ended = registration.untilEnded();
      // Whoever unregistered it before would have waited.
      registration.drain = origin;
      registration.revokePins();
      // A copy under way still has to end.
      await untilDoneOrAborted(ended, signal);
      if (signal?.aborted && !hasGone(registration)) throw abortError(signal);
    }
    if (hasGone(registration)) return { isClosed: registration.isMappingClosed, pins: 0 };
    if (registration.closeFailure !== undefined) throw registration.closeFailure;
    const { pins } = registration;
    if (waitMs !== undefined) throw refusals.stillInUse(name, pins);
    return { isClosed: false, pins };
  }

  /** See the registry's `unregisterAll`. */
  async unregisterAll(context: CallContext): Promise<void> {
    const origin = begin(context);
    const failures = await this.each(this.#unregisteredByAll(context), origin);
    if (failures.length > 0) throw refusals.unregisterAllFailed(failures);
  }

  /** Unregisters each, and goes on past failures, which it tells. */
  async each(registrations: readonly Registration[], origin: Origin): Promise<refusals.FailedRegion[]> {
    // Whoever waits for an open comes last, so that a slow one delays nobody else.
    const pending = registrations.filter(({ state }) => state === "registering");
    const others = registrations.filter(({ state }) => state !== "registering");
    const failures: refusals.FailedRegion[] = [];
    await forEachBounded([...others, ...pending], unregisterAllConcurrency, async (registration) => {
      const room = roomForAnother();
      if (room !== undefined) await room;
      try {
        await this.#lifecycle.unregister(registration, origin);
      } catch (error) {
        failures.push({ name: registration.name, error });
      }
    });
    return failures;
  }

  #unregisteredByAll(context: CallContext): Registration[] {
    const all = this.#table.all();
    switch (this.#policy.unregisterAll) {
      case "none":
        throw refusals.unregisterAllOff();
      case "own":
        return all.filter((registration) => isOwn(context, registration));
      case "all":
        return all.filter((registration) => this.#mayUnregister(registration, context));
    }
  }

  #mayUnregister(registration: Registration, context: CallContext): boolean {
    return maySee(this.#policy, context, registration) || mayTouch(context, registration);
  }

  #assertMayUnregister(registration: Registration, context: CallContext): void {
    if (!this.#mayUnregister(registration, context)) throw refusals.notOwner(registration.name);
  }

  /** Resolves when the region's close has succeeded or failed, when the time is over, or when nobody waits any more. */
  #untilEnded(registration: Registration, ms: number, signal: CallSignal | undefined): Promise<void> {
    if (registration.state !== "draining" || signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        cancel();
        stopListening();
        stopWaiting();
        resolve();
      };
      const cancel = this.#clock.after(ms, done);
      const stopListening = listenForAbort(signal, done);
      const stopWaiting = registration.onEnded(done);
    });
  }
}

/** Apart, since the compiler takes a state for settled that a call may have changed. */
function hasGone({ state }: Registration): boolean {
  return state === "gone";
}

function begin(context: CallContext, reason: ChangeReason = "requested"): Origin {
  return { context, startedAt: performance.now(), reason };
}
