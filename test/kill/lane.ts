import type { Allocation } from "./exporter-host.js";
import type { Effect, Fact, Ledger, May } from "./ledger.js";
import type { Caller, Outcome } from "./outcome.js";
import type { SeededRandom } from "./seeded-random.js";
import type { HeldSession } from "./session-client.js";

/** Either face, as far as the load goes. */
export interface Face {
  registerAsTriton(fact: Fact, caller: Caller): Promise<Outcome>;
  unregisterAsTriton(name: string, caller: Caller): Promise<Outcome>;
  unregisterAll(caller: Caller): Promise<Outcome>;
  register(fact: Fact, caller: Caller, replaces?: number | null): Promise<Outcome>;
  release(name: string, caller: Caller): Promise<Outcome>;
  renew(name: string, leaseSeconds: number, caller: Caller): Promise<Outcome>;
}

/** Who a lane calls as. */
export interface LaneCaller {
  readonly token: string | null;
  readonly session: HeldSession | null;
  readonly owner: string;
}

export interface LaneOptions {
  readonly random: SeededRandom;
  readonly ledger: Ledger;
  readonly faces: readonly Face[];
  readonly caller: LaneCaller;
  /** Names that no other lane uses, and names that all do. */
  readonly ownNames: readonly string[];
  readonly sharedNames: readonly string[];
  readonly allocations: () => readonly Allocation[];
  /** Whether an unregister of all takes the caller's own regions only. */
  readonly unregistersOwn: boolean;
  /** Whether what is not answered is to be expected. */
  readonly isDoomed: () => boolean;
  /** A byte size that no region had before. */
  readonly nextByteSize: () => number;
  /** Whether regions of the run before may still be taken up, or refused. */
  readonly isEarly: boolean;
}

/** One client that makes a call after the other, and enters in the ledger what it is told. */
export class Lane {
  readonly #options: LaneOptions;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  /** One call; false if the service is gone. Rejects if the answer is not what it has to be. */
  async step(): Promise<boolean> {
    const { random, ownNames, sharedNames } = this.#options;
    if (random.percent(1)) return this.#unregisterAll();
    if (sharedNames.length > 0 && random.percent(15)) return this.#onShared(random.pick(sharedNames));
    return this.#onOwn(random.pick(ownNames));
  }

  #onShared(name: string): Promise<boolean> {
    return this.#options.random.percent(60) ? this.#register(name) : this.#unregister(name);
  }

  #onOwn(name: string): Promise<boolean> {
    const { random, ledger } = this.#options;
    const [fact, ...others] = ledger.may(name);
    if (others.length > 0 || fact === null || fact === undefined) {
      return random.percent(80) ? this.#register(name) : this.#unregister(name);
    }
    const roll = random.below(100);
    if (roll < 50) return this.#unregister(name);
    if (roll < 65) return this.#renew(fact);
    if (roll < 80) return this.#replace(fact);
    if (roll < 90) return this.#again(fact);
    return this.#register(name);
  }

  #register(name: string): Promise<boolean> {
    const { random, caller } = this.#options;
    const isTritons = random.percent(35);
    const fact = this.#fact(name, isTritons);
    return this.#call(
      name,
      () => fact,
      (face) => (isTritons ? face.registerAsTriton(fact, caller) : face.register(fact, caller)),
      (before) => (before === null ? "done" : "ALREADY_EXISTS"),
    );
  }

  /** The very register that made it: the same answer, and nothing new, unless it went meanwhile. */
  #again(fact: Fact): Promise<boolean> {
    const { caller } = this.#options;
    return this.#call(
      fact.name,
      (before) => before ?? { ...fact, generation: null },
      (face) => face.register(fact, caller),
      (before) => (before === null || before.owner !== caller.owner ? undefined : "done"),
      true,
    );
  }

  #replace(old: Fact): Promise<boolean> {
    if (old.generation === null) return this.#unregister(old.name);
    const fact = this.#fact(old.name, false);
    return this.#call(
      old.name,
      () => fact,
      (face) => face.register(fact, this.#options.caller, old.generation),
      () => "done",
    );
  }

  #renew(fact: Fact): Promise<boolean> {
    const { random, caller } = this.#options;
    if (fact.leaseSeconds === null) return this.#unregister(fact.name);
    const leaseSeconds = 3600 + random.below(1000);
    return this.#call(
      fact.name,
      (before) => before && { ...before, leaseSeconds },
      (face) => face.renew(fact.name, leaseSeconds, caller),
      () => "done",
    );
  }

  #unregister(name: string): Promise<boolean> {
    const { random, caller } = this.#options;
    const isTritons = random.percent(50);
    return this.#call(
      name,
      () => null,
      (face) => (isTritons ? face.unregisterAsTriton(name, caller) : face.release(name, caller)),
      (before) => (before !== null || isTritons ? "done" : "NOT_FOUND"),
    );
  }

  async #unregisterAll(): Promise<boolean> {
    const { random, ledger, caller, faces, unregistersOwn } = this.#options;
    const takes = (fact: Fact) => !unregistersOwn || fact.owner === caller.owner;
    const call = ledger.beginAll((before) => (before !== null && takes(before) ? null : before));
    const outcome = await random.pick(faces).unregisterAll(caller);
    if (outcome.kind === "done") call.done(null);
    else call.lost();
    return this.#goesOn(outcome, "done");
  }

  async #call(
    name: string,
    effect: Effect,
    make: (face: Face) => Promise<Outcome>,
    expected: (before: May) => string | undefined,
    keepsGeneration = false,
  ): Promise<boolean> {
    const { random, ledger, faces, isEarly } = this.#options;
    const call = ledger.begin(name, effect);
    const outcome = await make(random.pick(faces));
    const before = call.certainly();
    if (outcome.kind === "done") call.done(outcome.generation);
    else if (outcome.kind === "refused" && isDefinite(outcome.code)) call.refused();
    else call.lost();
    const isCertain =
      !isEarly && before?.length === 1 && [before[0], effect(before[0] ?? null)].every(isAlive);
    const [was = null] = before ?? [];
    if (isCertain && keepsGeneration && outcome.kind === "done" && was?.generation !== null) {
      if (outcome.generation !== was?.generation) {
        throw new Error(`${name} has generation ${outcome.generation}, not ${was?.generation}`);
      }
    }
    return this.#goesOn(outcome, isCertain ? expected(was) : undefined, name);
  }

  #goesOn(outcome: Outcome, expected: string | undefined, name = "all"): boolean {
    const isDoomed = this.#options.isDoomed();
    if (outcome.kind === "lost") {
      if (!isDoomed) throw new Error(`the service is gone: ${outcome.why}`);
      return false;
    }
    const found = outcome.kind === "done" ? "done" : outcome.code;
    // Whoever stops refuses what would else be taken.
    if (expected === undefined || found === expected || (isDoomed && found === "UNAVAILABLE")) return true;
    const text = outcome.kind === "done" ? "" : `: ${outcome.text}`;
    throw new Error(`a call about ${name} was answered ${found}, not ${expected}${text}`);
  }

  #fact(name: string, isTritons: boolean): Fact {
    const { random, caller, allocations, nextByteSize } = this.#options;
    const allocation = random.pick(allocations());
    const byteSize = nextByteSize();
    return {
      name,
      allocation,
      byteSize,
      offset: isTritons ? 0 : random.below(allocation.byteSize - byteSize + 1),
      owner: caller.owner,
      session: caller.session,
      labels: isTritons || random.percent(50) ? {} : { lane: caller.owner, size: String(byteSize) },
      leaseSeconds: isTritons || random.percent(50) ? null : 3600 + random.below(1000),
      isExporterNamed: !isTritons && random.percent(80),
      generation: null,
    };
  }
}

function isAlive(fact: May | undefined): boolean {
  return fact === null || fact === undefined || fact.allocation.host.isAlive;
}

/** Whether a refusal says that nothing was changed. */
function isDefinite(code: string): boolean {
  return code !== "UNAVAILABLE" && code !== "INTERNAL";
}
