import { expect } from "vitest";
import { factText, type ServerState } from "./audit.js";
import type { ExporterHost } from "./exporter-host.js";
import type { Fact, Happening, Ledger } from "./ledger.js";

/** Why a region cannot be taken up again, as GET /v1 tells it; null if it has to be. */
function whyLost(fact: Fact, adoptsUnverified: boolean): RegExp | null {
  if (fact.session?.graceSeconds === 0) return /^its session ended with the service$/;
  if (!fact.isExporterNamed && !adoptsUnverified) return /--adopt-unverified/;
  if (fact.allocation.host.isAlive) return null;
  return fact.isExporterNamed ? /there is no such process|it is another process/ : /CUDA_ERROR_\w+ \(\d+\)/;
}

/** A restart that went well: what cannot be taken up is gone. */
export function restarted(adoptsUnverified: boolean): Happening {
  return (may) => [may === null || whyLost(may, adoptsUnverified) !== null ? null : may];
}

/** A restart that may have been cut short: what cannot be taken up is gone, or not yet. */
export function perhapsRestarted(adoptsUnverified: boolean): Happening {
  return (may) => (may === null || whyLost(may, adoptsUnverified) === null ? [may] : [may, null]);
}

/**
 * What was certainly there, and cannot be taken up: the region and the reason. Those of exporters that died while a
 * service ran may have been unregistered for that before.
 */
export function certainLosses(
  ledger: Ledger,
  adoptsUnverified: boolean,
  diedInRun: ReadonlySet<ExporterHost>,
): readonly [Fact, RegExp][] {
  return ledger.names.flatMap((name) => {
    const [fact = null, ...others] = ledger.may(name);
    if (fact === null || others.length > 0) return [];
    const why = whyLost(fact, adoptsUnverified);
    const mayBeReaped = fact.isExporterNamed && diedInRun.has(fact.allocation.host);
    return why === null || mayBeReaped ? [] : [[fact, why] as [Fact, RegExp]];
  });
}

/** Every loss is told, and nothing else is. `mayBe` is what the ledger allowed before the restart. */
export function assertRefusalsTold(
  { adoption }: ServerState,
  losses: readonly [Fact, RegExp][],
  mayBe: ReadonlyMap<string, readonly (Fact | null)[]>,
  adoptsUnverified: boolean,
): void {
  expect(adoption.pending).toBe(0);
  const refused = new Map(adoption.refused.map((refusal) => [refusal.name, refusal]));
  for (const [fact, why] of losses) {
    const refusal = refused.get(fact.name);
    expect(refusal?.reason, `refusal of ${fact.name}: ${factText(fact)}`).toMatch(why);
    if (fact.generation !== null) expect(refusal?.generation).toBe(fact.generation);
  }
  for (const { name, reason } of adoption.refused) {
    const reasons = (mayBe.get(name) ?? []).map((fact) => fact && whyLost(fact, adoptsUnverified));
    expect(
      reasons.some((why) => why?.test(reason)),
      `${name} was refused: ${reason}`,
    ).toBe(true);
  }
}
