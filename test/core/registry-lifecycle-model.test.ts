import fc from "fast-check";
import { expect, test } from "vitest";
import type { RegistryError } from "../../src/core/errors.js";
import type { Exporter } from "../../src/core/exporter.js";
import type { RegionPin } from "../../src/core/region.js";
import type { Hold } from "../../src/core/sessions.js";
import { driverError, type FakeAllocation } from "../helpers/fake-driver.js";
import { admin, createLifecycle, within } from "../helpers/lifecycle-harness.js";
import { request, untilIdle } from "../helpers/registry-harness.js";

const name = fc.constantFrom("a", "b", "c");
const leaseMs = fc.constantFrom(undefined, 2000, 6000);
const action = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("register" as const),
      name,
      leaseMs,
      hasExporter: fc.boolean(),
      inSession: fc.boolean(),
      isDryRun: fc.nat(5).map((n) => n === 0),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("register the same" as const), name }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("replace" as const), name, leaseMs }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("renew" as const), name, leaseMs }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("unregister" as const), name }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("release by force" as const), name }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("unregister all" as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("pin" as const), name }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("let go" as const), name }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("a second passes" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("the exporter exits" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("the session ends" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("the journal" as const), isFull: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("closes" as const), fail: fc.boolean() }) },
);
type Action = typeof action extends fc.Arbitrary<infer T> ? T : never;

/** What the model knows of a region. Each has memory of its own, so none keeps another's mapped. */
interface Entry {
  state: "ready" | "orphaned" | "draining" | "close_failed";
  generation: bigint;
  handles: number;
  pins: RegionPin[];
  allocation: FakeAllocation;
  leaseMs: number | null;
  /** When its lease is over, and when it goes for another reason. */
  leaseEnd: number | null;
  otherEnd: number | null;
  exporter: Exporter | undefined;
  session: string | null;
}

/** What a registry should do, in the simplest words there are for it. */
class Model {
  readonly entries = new Map<string, Entry>();
  isFull = false;
  closesFail = false;
  generation = 0n;
  now = 0;

  /** What a call is answered that ends a region. */
  leave(name: string): string {
    const entry = this.entries.get(name);
    if (entry === undefined || entry.state === "draining") return "OK";
    if (entry.state !== "close_failed" && this.isFull) return "UNAVAILABLE";
    entry.leaseEnd = entry.otherEnd = null;
    if (entry.pins.length > 0) {
      entry.state = "draining";
      return "OK";
    }
    return this.close(name, entry);
  }

  close(name: string, entry: Entry): string {
    entry.leaseEnd = entry.otherEnd = null;
    if (this.closesFail) entry.state = "close_failed";
    else this.entries.delete(name);
    return this.closesFail ? "INTERNAL" : "OK";
  }

  /** A second later: whatever cannot be written down is tried again after five. */
  tick(): void {
    this.now += 1000;
    for (const [name, entry] of [...this.entries]) {
      for (const end of ["leaseEnd", "otherEnd"] as const) {
        if (entry[end] === null || (entry[end] as number) > this.now) continue;
        if (this.isFull) entry[end] = this.now + 5000;
        else this.leave(name);
      }
    }
  }
}

class Run {
  readonly harness = createLifecycle({ orphanGraceMs: 3000 });
  readonly model = new Model();
  exporter = this.harness.exporters.start();
  hold: Hold = this.harness.openSession();

  constructor() {
    this.harness.driver.beforeClose = () => {
      if (this.model.closesFail) throw driverError(1, "CUDA_ERROR_INVALID_VALUE");
    };
  }

  /** Does it, and answers what the model expects of it. */
  async perform(act: Action): Promise<{ expected: string; outcome: string }> {
    const { registry, journal, clock, exporters } = this.harness;
    const { model } = this;
    const entry = "name" in act ? model.entries.get(act.name) : undefined;
    let expected = "OK";
    let call: Promise<unknown> = Promise.resolve();
    switch (act.do) {
      case "register":
        ({ expected, call } = this.#register(act));
        break;
      case "register the same": {
        const isSame = entry?.state === "ready" && entry.session === null;
        if (entry === undefined) break;
        expected = isSame ? "OK" : "ALREADY_EXISTS";
        if (isSame && entry.leaseMs !== null) entry.leaseEnd = model.now + entry.leaseMs;
        call = registry.register(request(act.name, entry.allocation.handle, { isIdempotent: true }), admin);
        break;
      }
      case "replace":
        ({ expected, call } = this.#replace(act.name, act.leaseMs ?? null));
        break;
      case "renew": {
        const length = act.leaseMs ?? entry?.leaseMs ?? null;
        const stays =
          (entry?.state === "ready" || entry?.state === "orphaned") &&
          (entry.session === null || registry.sessions.isOpen(entry.session));
        if (entry === undefined) expected = "NOT_FOUND";
        else if (length === null || !stays) expected = "FAILED_PRECONDITION";
        else if (length !== entry.leaseMs && model.isFull) expected = "UNAVAILABLE";
        else {
          entry.leaseMs = length;
          entry.leaseEnd = model.now + length;
        }
        call = registry.renew(act.name, { leaseMs: act.leaseMs }, admin);
        break;
      }
      case "unregister":
        expected = model.leave(act.name);
        call = registry.unregister(act.name, admin);
        break;
      case "release by force":
        expected = entry === undefined ? "NOT_FOUND" : model.leave(act.name);
        if (entry?.state === "draining") {
          entry.pins = [];
          expected = model.close(act.name, entry);
        }
        call = registry.release(act.name, { isForced: true }, admin);
        break;
      case "unregister all":
        expected = [...model.entries.keys()].map((name) => model.leave(name)).every((code) => code === "OK")
          ? "OK"
          : "INTERNAL";
        call = registry.unregisterAll(admin);
        break;
      case "pin":
        if (entry === undefined) expected = "NOT_FOUND";
        else if (entry.state === "close_failed") expected = "FAILED_PRECONDITION";
        call = (async () =>
          entry?.pins.push(registry.pin(act.name, null, admin)) ?? registry.pin(act.name, null, admin))();
        break;
      case "let go":
        entry?.pins.pop()?.release();
        if (entry?.state === "draining" && entry.pins.length === 0) model.close(act.name, entry);
        break;
      case "a second passes":
        clock.advance(1000);
        model.tick();
        break;
      case "the exporter exits":
        for (const other of model.entries.values()) {
          if (other.state !== "ready" || other.exporter !== this.exporter) continue;
          other.state = "orphaned";
          other.otherEnd ??= model.now + 3000;
        }
        exporters.exit(this.exporter);
        this.exporter = exporters.start();
        break;
      case "the session ends":
        for (const [name, other] of [...model.entries]) {
          if (other.session !== this.hold.session.id) continue;
          if (model.leave(name) === "UNAVAILABLE") other.otherEnd ??= model.now + 5000;
        }
        this.hold.end();
        this.hold = this.harness.openSession();
        break;
      case "the journal":
        model.isFull = journal.isFull = act.isFull;
        break;
      case "closes":
        model.closesFail = act.fail;
    }
    const outcome = await call.then(
      () => "OK",
      (error: RegistryError) => error.code,
    );
    await untilIdle();
    return { expected, outcome };
  }

  check(): void {
    const { registry, journal, exporters, clock, driver } = this.harness;
    const entries = [...this.model.entries].sort(([a], [b]) => (a < b ? -1 : 1));
    const living = entries.filter(([, { state }]) => state === "ready" || state === "orphaned");
    const shown = registry.statuses();
    expect(shown.map(({ name, state, pins, generation }) => [name, state, pins, generation])).toEqual(
      entries.map(([name, { state, pins, generation }]) => [name, state, pins.length, generation]),
    );
    expect(journal.names()).toEqual(living.map(([name]) => name));
    const mapped = entries.reduce((sum, [, { handles }]) => sum + handles, 0);
    expect([registry.mappings, driver.openMappings]).toEqual([mapped, mapped]);
    const timers = living.flatMap(([, { leaseEnd, otherEnd }]) => [leaseEnd, otherEnd]);
    expect(clock.pending).toBe(timers.filter((end) => end !== null).length);
    expect(exporters.watches).toBe(
      living.filter(([, { state, exporter }]) => state === "ready" && exporter).length,
    );
  }

  #register(act: Action & { do: "register" }): { expected: string; call: Promise<unknown> } {
    const { registry, driver } = this.harness;
    const { model } = this;
    const allocation = driver.allocate(64);
    const call = registry.register(
      request(act.name, allocation.handle, {
        leaseMs: act.leaseMs,
        exporter: act.hasExporter ? this.exporter : undefined,
        isDryRun: act.isDryRun,
      }),
      act.inSession ? within(this.hold) : admin,
    );
    if (model.entries.has(act.name)) return { expected: "ALREADY_EXISTS", call };
    const generation = act.isDryRun ? 0n : ++model.generation;
    const entry: Entry = {
      state: "ready",
      generation,
      handles: 1,
      pins: [],
      allocation,
      leaseMs: act.leaseMs ?? null,
      leaseEnd: act.leaseMs === undefined ? null : model.now + act.leaseMs,
      otherEnd: null,
      exporter: act.hasExporter ? this.exporter : undefined,
      session: act.inSession ? this.hold.session.id : null,
    };
    if (!act.isDryRun && !model.isFull) {
      model.entries.set(act.name, entry);
      return { expected: "OK", call };
    }
    // What is opened and not to stay is closed, or stays as what could not be.
    if (model.closesFail) model.entries.set(act.name, entry);
    const closed = model.close(act.name, entry);
    return { expected: act.isDryRun || closed !== "OK" ? closed : "UNAVAILABLE", call };
  }

  #replace(name: string, leaseMs: number | null): { expected: string; call: Promise<unknown> } {
    const { registry, driver } = this.harness;
    const { model } = this;
    const entry = model.entries.get(name);
    const allocation = driver.allocate(64);
    const call = registry.register(
      request(name, allocation.handle, {
        replaces: entry?.generation ?? 1n,
        leaseMs: leaseMs ?? undefined,
      }),
      admin,
    );
    if (entry === undefined || (entry.state !== "ready" && entry.state !== "orphaned")) {
      return { expected: "FAILED_PRECONDITION", call };
    }
    const generation = ++model.generation;
    if (entry.pins.length > 0 || model.isFull) {
      // What was opened in vain goes with the region that stays, if it cannot be closed now.
      if (model.closesFail) entry.handles++;
      const expected = entry.pins.length > 0 ? "FAILED_PRECONDITION" : "UNAVAILABLE";
      return { expected: model.closesFail ? "INTERNAL" : expected, call };
    }
    if (model.closesFail) {
      entry.handles++;
      return { expected: model.close(name, entry), call };
    }
    model.entries.set(name, {
      ...entry,
      state: "ready",
      generation,
      handles: 1,
      allocation,
      leaseMs,
      leaseEnd: leaseMs === null ? null : model.now + leaseMs,
      otherEnd: null,
      exporter: undefined,
      session: null,
    });
    return { expected: "OK", call };
  }
}

test("one thing after the other, the registry does what a simple model of its regions does", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(action, { maxLength: 60, size: "max" }), async (actions) => {
      const run = new Run();
      for (const act of actions) {
        const { expected, outcome } = await run.perform(act);
        expect(outcome).toBe(expected);
        run.check();
      }
    }),
    { numRuns: 150 },
  );
});
