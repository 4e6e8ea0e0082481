import type { Death } from "./doomed-service.js";
import type { SeededRandom } from "./seeded-random.js";

/** How a service's run is to end. */
export type KillPlan =
  /** Killed after so many answers, or sent SIGTERM first and killed while it stops. */
  | { readonly kind: "load"; readonly answers: number; readonly turns: number; readonly isStopping: boolean }
  /** Kills itself at a call on its state file. */
  | { readonly kind: "file"; readonly death: Death }
  /** Killed so many milliseconds after it was told to start. */
  | { readonly kind: "start"; readonly afterMs: number }
  /** Killed as soon as it took up the first region. */
  | { readonly kind: "adoption"; readonly turns: number };

/** Calls on the state file that a start makes, give or take some. */
const callsOfStart = 14;

export function planKill(random: SeededRandom): KillPlan {
  const roll = random.below(100);
  const turns = random.below(30);
  if (roll < 45) {
    return { kind: "load", answers: random.below(150), turns, isStopping: random.percent(15) };
  }
  if (roll < 75) return { kind: "file", death: death(random, callsOfStart + random.below(60)) };
  if (roll < 85) return { kind: "file", death: death(random, 1 + random.below(callsOfStart)) };
  if (roll < 92) return { kind: "start", afterMs: random.below(150) };
  return { kind: "adoption", turns };
}

/** Whether the run is to end before it is ready. */
export function endsInStart(plan: KillPlan): boolean {
  if (plan.kind === "file") return plan.death.call < callsOfStart;
  return plan.kind === "start" || plan.kind === "adoption";
}

function death(random: SeededRandom, call: number): Death {
  return { call, isRewrite: false, when: random.pick(["before", "half", "after"]) };
}
