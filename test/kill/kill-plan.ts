import type { Death } from "./doomed-service.js";
import type { SeededRandom } from "./seeded-random.js";

/** How a service's run is to end. */
export type KillPlan =
  /** Killed after so many answers; or sent SIGTERM then, and killed while it stops, or not at all. */
  | {
      readonly kind: "load";
      readonly answers: number;
      readonly turns: number;
      readonly signals: readonly ("SIGTERM" | "SIGKILL")[];
    }
  /** Kills itself at a call on its state file. */
  | { readonly kind: "file"; readonly death: Death }
  /** Killed so many milliseconds after it was told to start. */
  | { readonly kind: "start"; readonly afterMs: number }
  /** Killed as soon as it took up the first region. */
  | { readonly kind: "adoption"; readonly turns: number };

/** Calls on the state file that a start makes, give or take some. */
const callsOfStart = 14;

const kill = ["SIGKILL"] as const;
const signalsOfLoad = [
  kill,
  kill,
  kill,
  kill,
  kill,
  kill,
  kill,
  kill,
  kill,
  kill,
  ["SIGTERM", "SIGKILL"],
  ["SIGTERM"],
] as const;

export function planKill(random: SeededRandom): KillPlan {
  const roll = random.below(100);
  const turns = random.below(30);
  if (roll < 45) {
    const signals = random.pick(signalsOfLoad);
    return { kind: "load", answers: random.below(150), turns, signals };
  }
  if (roll < 75) return { kind: "file", death: death(random, callsOfStart + random.below(60)) };
  if (roll < 85) return { kind: "file", death: death(random, 1 + random.below(callsOfStart)) };
  if (roll < 92) return { kind: "start", afterMs: random.below(150) };
  return { kind: "adoption", turns };
}

/** Whether the run is to end before it is ready. */
export function endsInStart(plan: KillPlan): boolean {
  if (plan.kind === "file") return !plan.death.isRewrite && plan.death.call <= callsOfStart;
  return plan.kind === "start" || plan.kind === "adoption";
}

/** A death while the file, grown long, is written anew under load. */
export function planRewriteDeath(random: SeededRandom): KillPlan {
  const callsOfRewrite = 6;
  const call = callsOfRewrite + 1 + random.below(callsOfRewrite);
  return { kind: "file", death: { ...death(random, call), isRewrite: true } };
}

function death(random: SeededRandom, call: number): Death {
  return { call, isRewrite: false, when: random.pick(["before", "half", "after"]) };
}
