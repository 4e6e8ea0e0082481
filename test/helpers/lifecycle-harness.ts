import type { CallContext } from "../../src/core/region.js";
import type { RegistryOptions } from "../../src/core/registry.js";
import type { Hold } from "../../src/core/sessions.js";
import { FakeClock } from "./fake-clock.js";
import { FakeExporters } from "./fake-exporters.js";
import { FakeJournal } from "./fake-journal.js";
import { context, createHarness } from "./registry-harness.js";

export const alice: CallContext = { ...context, owner: "alice" };
export const bob: CallContext = { ...context, owner: "bob" };
export const admin: CallContext = { ...context, owner: "ops", isAdmin: true };

/** A registry of which time, exporters and the journal are the test's. */
export function createLifecycle(options: Omit<RegistryOptions, "driver"> = {}) {
  const clock = new FakeClock();
  const exporters = new FakeExporters();
  const journal = new FakeJournal();
  const harness = createHarness({ clock, exporters, journal, orphanGraceMs: 30_000, ...options });
  return {
    ...harness,
    clock,
    exporters,
    journal,
    /** Every region's name and state, as `name state`. */
    states: () => harness.registry.statuses().map(({ name, state }) => `${name} ${state}`),
    /** What is left of the regions: nothing, once all are gone. */
    leftovers: () => ({
      mappings: harness.registry.mappings,
      open: harness.driver.openMappings,
      timers: clock.pending,
      watches: exporters.watches,
      written: journal.names(),
    }),
    openSession: (resumeGraceMs = 0, owner = "anonymous"): Hold =>
      harness.registry.sessions.open({ caller: { owner, isAdmin: false, session: null }, resumeGraceMs }),
  };
}

/** What leftovers are of a registry that has nothing. */
export const nothing = { mappings: 0, open: 0, timers: 0, watches: 0, written: [] };

/** The context of a call in the session. */
export function within({ session }: Hold): CallContext {
  return { ...context, owner: session.owner, session: session.id };
}
