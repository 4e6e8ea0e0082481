import { expect } from "vitest";
import type { StateFile } from "../../src/state/state-file.js";
import { recordOf } from "./records.js";

interface Change {
  /** Which regions are there after it, and which are not. */
  readonly effects: readonly (readonly [generation: number, isThere: boolean])[];
  outcome: "pending" | "done" | "refused";
}

/** What may be found of each region that was ever asked for. */
export type Allowed = ReadonlyMap<number, ReadonlySet<boolean>>;

/** Asks a state file for changes, and keeps what came of them: the model of what a restart must find. */
export class ToldChanges {
  readonly #file: StateFile;
  readonly #changes: Change[] = [];

  constructor(file: StateFile) {
    this.#file = file;
  }

  /** Resolves once it is answered, whichever way. */
  register(generation: number, replaces?: number): Promise<void> {
    const replaced = replaces === undefined ? undefined : BigInt(replaces);
    const gone = replaces === undefined ? [] : [[replaces, false] as const];
    const effects = [...gone, [generation, true] as const];
    return this.#follow(this.#file.registered(recordOf(generation), replaced), effects);
  }

  /** Resolves once it is answered, whichever way. */
  leave(generation: number): Promise<void> {
    return this.#follow(this.#file.left(BigInt(generation)), [[generation, false]]);
  }

  /**
   * What a restart may find now: all that was told, and any of what is not answered yet. What was refused can only be
   * there while nothing was told since, since the file is mended before anything else is taken.
   */
  allowed(): Allowed {
    const allowed = new Map<number, Set<boolean>>();
    const lastDone = this.#changes.findLastIndex(({ outcome }) => outcome === "done");
    for (const [index, { effects, outcome }] of this.#changes.entries()) {
      if (outcome === "refused" && index < lastDone) continue;
      for (const [generation, isThere] of effects) {
        const before = outcome === "done" ? [] : (allowed.get(generation) ?? [false]);
        allowed.set(generation, new Set([...before, isThere]));
      }
    }
    return allowed;
  }

  /** How many changes were told, and how many refused. */
  count(outcome: Change["outcome"]): number {
    return this.#changes.filter((change) => change.outcome === outcome).length;
  }

  async #follow(answer: Promise<void>, effects: Change["effects"]): Promise<void> {
    const change: Change = { effects, outcome: "pending" };
    this.#changes.push(change);
    change.outcome = await answer.then(
      () => "done" as const,
      () => "refused" as const,
    );
  }
}

/** Fails unless what was found is allowed. */
export function assertAllowed(found: readonly number[], allowed: Allowed): void {
  const wrong = [...allowed].filter(([generation, may]) => !may.has(found.includes(generation)));
  expect(wrong).toEqual([]);
  expect(found.filter((generation) => !allowed.has(generation))).toEqual([]);
}
