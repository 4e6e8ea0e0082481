import type { Allocation } from "./exporter-host.js";
import type { HeldSession } from "./session-client.js";

/** A region as the client knows it that registered it. No two have the same byte size. */
export interface Fact {
  readonly name: string;
  readonly allocation: Allocation;
  readonly offset: number;
  readonly byteSize: number;
  readonly owner: string;
  readonly session: HeldSession | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly leaseSeconds: number | null;
  readonly isExporterNamed: boolean;
  /** Null until the service told it. */
  readonly generation: number | null;
}

/** What may be under a name; null for nothing. */
export type May = Fact | null;

/** What a call makes of what was there. */
export type Effect = (before: May) => May;

/** What may be there after something happened. */
export type Happening = (may: May) => readonly May[];

/** A call that was not answered yet. */
export interface OpenCall {
  /** What may have been there when it was made, if no other call was about the name meanwhile. */
  certainly(): readonly May[] | null;
  done(generation: number | null): void;
  refused(): void;
  lost(): void;
}

class NameLedger {
  may: readonly May[] = [null];
  readonly open = new Set<{ readonly effect: Effect; isAlone: boolean }>();

  begin(effect: Effect): OpenCall {
    const before = this.may;
    const call = { effect, isAlone: this.open.size === 0 };
    for (const other of this.open) other.isAlone = false;
    this.open.add(call);
    this.may = this.#inAnyOrder(before);
    const end = (after: readonly May[] | null) => {
      this.open.delete(call);
      if (call.isAlone && after !== null) this.may = union([], after);
    };
    return {
      certainly: () => (call.isAlone ? before : null),
      done: (generation) => {
        const after = before.map(effect);
        end(after.map((fact) => (fact === null || generation === null ? fact : { ...fact, generation })));
      },
      refused: () => end(before),
      lost: () => end(null),
    };
  }

  /** What may come of this if the open calls are carried out, or not, in whichever order. */
  #inAnyOrder(before: readonly May[]): readonly May[] {
    let all = before;
    for (let count = 0; count < all.length; ) {
      count = all.length;
      for (const { effect } of this.open) all = union(all, all.map(effect));
    }
    return all;
  }
}

/** What clients were told of each name, and so what may be there: their own book about the service. */
export class Ledger {
  readonly #names = new Map<string, NameLedger>();
  readonly #openForAll = new Set<{ readonly effect: Effect; readonly calls: OpenCall[] }>();

  /** Those of which it is not known that nothing is there. */
  get names(): readonly string[] {
    return [...this.#names.keys()];
  }

  may(name: string): readonly May[] {
    return this.#names.get(name)?.may ?? [null];
  }

  /** A call about a name is made. */
  begin(name: string, effect: Effect): OpenCall {
    return this.#of(name).begin(effect);
  }

  /** A call about all names is made, those included that are first heard of while it is open. */
  beginAll(effect: Effect): Pick<OpenCall, "done" | "lost"> {
    const all = { effect, calls: this.names.map((name) => this.begin(name, effect)) };
    this.#openForAll.add(all);
    const end = (endOne: (call: OpenCall) => void) => {
      this.#openForAll.delete(all);
      for (const call of all.calls) endOne(call);
    };
    return {
      done: (generation) => end((call) => call.done(generation)),
      lost: () => end((call) => call.lost()),
    };
  }

  /** From now on exactly this is known to be there. */
  settle(name: string, fact: May): void {
    this.#names.delete(name);
    if (fact !== null) this.#of(name).may = [fact];
  }

  /** Something happened to all regions that no call asked for. */
  apply(happened: Happening): void {
    for (const ledger of this.#names.values()) ledger.may = union([], ledger.may.flatMap(happened));
  }

  #of(name: string): NameLedger {
    let ledger = this.#names.get(name);
    if (ledger === undefined) {
      ledger = new NameLedger();
      this.#names.set(name, ledger);
      for (const { effect, calls } of this.#openForAll) calls.push(ledger.begin(effect));
    }
    return ledger;
  }
}

function union(some: readonly May[], others: readonly May[]): readonly May[] {
  const all = [...some];
  for (const other of others) if (!all.some((one) => isSame(one, other))) all.push(other);
  return all;
}

function isSame(one: May, other: May): boolean {
  if (one === null || other === null) return one === other;
  return (
    one.byteSize === other.byteSize &&
    one.leaseSeconds === other.leaseSeconds &&
    one.generation === other.generation
  );
}
