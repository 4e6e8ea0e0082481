import fc from "fast-check";
import { expect } from "vitest";
import type { WatchEvent } from "../../src/core/change-history.js";
import { DriverError } from "../../src/core/driver.js";
import { RegistryError } from "../../src/core/errors.js";
import type { CallContext, RegionPin, RegionState } from "../../src/core/region.js";
import type { Hold } from "../../src/core/sessions.js";
import { createDeferred } from "./deferred.js";
import { driverError, type FakeAllocation } from "./fake-driver.js";
import { createLifecycle, within } from "./lifecycle-harness.js";
import { context, request, untilIdle } from "./registry-harness.js";

const names = ["a", "b"];
const name = fc.constantFrom(...names);
const rarely = fc.nat(5).map((n) => n === 0);
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 });

const register = fc.record({
  do: fc.constant("register" as const),
  name,
  handle: fc.nat(2),
  owner: fc.constantFrom("anonymous", "alice"),
  session: maybe(fc.nat(1)),
  leaseMs: maybe(fc.constantFrom(1000, 4000, 60_000)),
  exporter: maybe(fc.nat(1)),
  isTooLarge: rarely,
  isDryRun: rarely,
  isIdempotent: fc.boolean(),
  replaces: fc.boolean(),
  isAbortable: fc.boolean(),
});
const which = fc.nat();

const step = fc.oneof(
  { weight: 8, arbitrary: register },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("renew" as const),
      name,
      leaseMs: maybe(fc.constantFrom(2000, 4000)),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("unregister" as const), name }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("unregisterAll" as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("release" as const),
      name,
      waitMs: maybe(fc.constantFrom(0, 3000)),
      isForced: fc.boolean(),
      isAbortable: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("waitFor" as const), name }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("abort" as const), which }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("pin" as const), name }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("copy" as const), which }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("let go" as const), which }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("time passes" as const),
      ms: fc.constantFrom(500, 1000, 5000, 30_000),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("exporter exits" as const), slot: fc.nat(1) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("session opens" as const),
      slot: fc.nat(1),
      graceMs: fc.constantFrom(0, 10_000),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom("session breaks" as const, "session ends" as const, "session resumes" as const),
      slot: fc.nat(1),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant("driver answers" as const), which, refuses: rarely }),
  },
  { weight: 8, arbitrary: fc.record({ do: fc.constant("journal answers" as const), refuses: rarely }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("exporters are found" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("driver is there" as const) }) },
);

export type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** Steps, and how far the microtask queue gets before the next one: null until it is empty. */
export const lifecycleSchedule = fc.record({
  isObservedSlowly: fc.boolean(),
  /** Whether each answers at once, so that steps find more regions that are ready. */
  isDriverPrompt: fc.boolean(),
  isJournalPrompt: fc.boolean(),
  isLookupPrompt: fc.boolean(),
  adopted: fc.constantFrom(0, 0, 0, 1, 2),
  steps: fc.array(fc.tuple(step, fc.option(fc.nat(8), { nil: null, freq: 2 })), {
    maxLength: 60,
    size: "max",
  }),
});

export type LifecycleSchedule = typeof lifecycleSchedule extends fc.Arbitrary<infer T> ? T : never;

interface Held {
  settle(refuses: boolean): void;
}

/** A registry and everyone around it, who answer when a step says so. */
export class LifecycleRun {
  readonly harness;
  readonly #allocations;
  readonly #driverCalls: Held[] = [];
  readonly #writes: Held[] = [];
  readonly #lookups: Held[] = [];
  readonly #aborts: AbortController[] = [];
  readonly #pins: RegionPin[] = [];
  readonly #exporters;
  readonly #holds: (Hold | undefined)[];
  readonly #usable = createDeferred();
  readonly #told: WatchEvent[] = [];
  readonly #reading = new AbortController();
  readonly #dryRuns = new Set<bigint>();
  readonly faults: unknown[] = [];
  #unsettled = 0;
  #isStopped = false;

  constructor(schedule: LifecycleSchedule) {
    const { isObservedSlowly, isDriverPrompt, isJournalPrompt, isLookupPrompt, adopted } = schedule;
    this.harness = createLifecycle({
      observers: isObservedSlowly ? [() => Promise.resolve()] : [],
      generation: BigInt(adopted),
    });
    const { driver, journal, exporters, registry } = this.harness;
    this.#allocations = [64, 64, 128].map((size) => driver.allocate(size));
    this.#exporters = [exporters.start(), exporters.start()];
    const diskFull = () => new RegistryError("UNAVAILABLE", "disk full");
    driver.beforeOpen = driver.beforeClose = driver.beforeCopy = () => hold(this.#driverCalls, driverFault);
    if (isDriverPrompt) driver.beforeOpen = driver.beforeClose = undefined;
    if (!isJournalPrompt) journal.beforeWrite = () => hold(this.#writes, diskFull);
    if (!isLookupPrompt) exporters.beforeWatch = () => hold(this.#lookups, driverFault);
    void this.#read(registry.watch({ fromRevision: 1n }, { ...context, signal: this.#reading.signal }));
    for (let index = 0; index < adopted; index++) this.#adopt(index);
    this.#holds = [this.harness.openSession(), this.harness.openSession(10_000)];
  }

  perform(step: Step): void {
    const { registry, clock, exporters } = this.harness;
    switch (step.do) {
      case "register":
        this.#register(step);
        break;
      case "renew":
        this.#track(registry.renew(step.name, { leaseMs: step.leaseMs }, context));
        break;
      case "unregister":
        this.#track(registry.unregister(step.name, context));
        break;
      case "unregisterAll":
        this.#track(registry.unregisterAll(context));
        break;
      case "release":
        this.#track(registry.release(step.name, step, this.#abortable(context, step.isAbortable)));
        break;
      case "waitFor":
        this.#track(registry.waitFor(step.name, 2000, this.#abortable(context, true)));
        break;
      case "abort":
        pick(this.#aborts, step.which)?.abort();
        break;
      case "pin":
        try {
          this.#pins.push(registry.pin(step.name, null, { ...context, isAdmin: true }));
        } catch (error) {
          expect(["NOT_FOUND", "FAILED_PRECONDITION", "UNAVAILABLE"]).toContain(
            (error as RegistryError).code,
          );
        }
        break;
      case "copy": {
        const pin = pick(this.#pins, step.which);
        if (pin !== undefined) this.#track(pin.read(0n, new Uint8Array(1)));
        break;
      }
      case "let go":
        pick(this.#pins, step.which)?.release();
        break;
      case "time passes":
        clock.advance(step.ms);
        break;
      case "exporter exits": {
        const exporter = this.#exporters[step.slot];
        if (exporter !== undefined) exporters.exit(exporter);
        this.#exporters[step.slot] = exporters.start();
        break;
      }
      case "session opens":
        if (!this.#isStopped) this.#holds[step.slot] ??= this.harness.openSession(step.graceMs);
        break;
      case "session breaks":
        this.#holds[step.slot]?.release();
        break;
      case "session ends":
        this.#holds[step.slot]?.end();
        this.#holds[step.slot] = undefined;
        break;
      case "session resumes":
        this.#resume(step.slot);
        break;
      case "driver answers":
        pick(this.#driverCalls, step.which)?.settle(step.refuses);
        break;
      case "journal answers":
        this.#writes[0]?.settle(step.refuses);
        break;
      case "exporters are found":
        this.#settleAll(this.#lookups);
        break;
      case "driver is there":
        this.#usable.resolve();
    }
  }

  /** What has to hold whenever nothing runs but the driver, the journal and the clock. */
  check(): void {
    const { driver, registry, changes } = this.harness;
    expect(driver.openMappings).toBe(registry.mappings);
    expect(driver.redundantCloses).toBe(0);
    expect(changes.map(({ revision }) => revision)).toEqual(changes.map((_, index) => BigInt(index + 1)));
    expect(registry.revision).toBe(BigInt(changes.length));
    for (const { kind, cause, region } of changes) {
      // Anything else would be the fake telling of an overlap or of a use after the close.
      if (kind === "close_failed") expect(cause).toBeInstanceOf(DriverError);
      if (kind === "registered") expect(this.#dryRuns).not.toContain(region.generation);
    }
    const shown = registry.statuses().map(({ name, generation, state }) => [name, { generation, state }]);
    const watched = this.#told.flatMap((event) => (event.kind === "change" ? [event.change] : []));
    for (const told of [changes, watched]) {
      const model = new Map<string, { generation: bigint; state: RegionState }>();
      for (const { kind, region } of told) {
        if (kind === "unregistered") model.delete(region.name);
        else model.set(region.name, { generation: region.generation, state: region.state });
      }
      expect(shown).toEqual([...model].sort(([a], [b]) => (a < b ? -1 : 1)));
    }
  }

  /** Lets everything under way end well, but nothing that waits for time. */
  async settle(): Promise<void> {
    const { driver, journal, exporters } = this.harness;
    driver.beforeOpen = driver.beforeClose = driver.beforeCopy = undefined;
    journal.beforeWrite = exporters.beforeWatch = undefined;
    this.#usable.resolve();
    do {
      for (const held of [this.#driverCalls, this.#writes, this.#lookups]) this.#settleAll(held);
      await untilIdle();
    } while (this.#driverCalls.length + this.#writes.length + this.#lookups.length > 0);
  }

  /** The journal and the driver are well again: what could not be done is done by and by. */
  async recover(): Promise<void> {
    const { clock } = this.harness;
    for (const pin of this.#pins) pin.release();
    for (let round = 0; round < 3; round++) {
      await this.settle();
      clock.advance(5000);
    }
    await this.settle();
    expect(this.#unsettled).toBe(0);
    this.check();
    this.#checkAtRest();
  }

  /** Everyone goes; answers what is left. */
  async end() {
    const { registry, clock } = this.harness;
    await registry.unregisterAll(context);
    this.check();
    for (const hold of this.#holds) hold?.end();
    clock.advance(10_000);
    await untilIdle();
    for (const name of names) await this.#tryName(name);
    return { ...this.harness.leftovers(), regions: registry.statuses() };
  }

  /** The registry stops while all this is under way; answers what is left, but for what is written down. */
  async stop() {
    const { registry } = this.harness;
    this.#isStopped = true;
    const closed = registry.close();
    this.#track(closed);
    for (const abort of this.#aborts) abort.abort();
    for (const pin of this.#pins) pin.release();
    await this.settle();
    await closed;
    this.check();
    this.harness.clock.advance(3000);
    await untilIdle();
    expect(this.#unsettled).toBe(0);
    const { written, ...left } = this.harness.leftovers();
    return { ...left, regions: registry.statuses() };
  }

  stopReading(): void {
    this.#reading.abort();
  }

  /** What has to hold once nothing is under way, nothing is pinned and no write has to be tried again. */
  #checkAtRest(): void {
    const { registry, journal, exporters, clock } = this.harness;
    const regions = registry.statuses();
    expect(regions.filter(({ state }) => state === "draining")).toEqual([]);
    const living = regions.filter(({ state }) => state === "ready" || state === "orphaned");
    expect([...journal.records.keys()].sort()).toEqual(living.map(({ generation }) => generation).sort());
    for (const { generation, leaseMs, name } of living) {
      expect(journal.records.get(generation)).toMatchObject({ leaseMs, name });
    }
    expect(exporters.watches).toBe(
      living.filter(({ state, exporter }) => state === "ready" && exporter).length,
    );
    // What is left of the timers is the time in which a session can be resumed.
    const leases = living.filter(({ leaseMs }) => leaseMs !== null).length;
    const orphans = living.filter(({ state }) => state === "orphaned").length;
    expect(clock.pending - leases - orphans).toBeOneOf([0, 1, 2]);
    const now = clock.now();
    for (const { leaseExpiresAt } of living) {
      if (leaseExpiresAt !== null) expect(leaseExpiresAt).toBeGreaterThan(now);
    }
    for (const { session } of living) if (session) expect(registry.sessions.isOpen(session)).toBe(true);
  }

  async #tryName(name: string): Promise<void> {
    const { registry, driver } = this.harness;
    await registry.register(request(name, driver.allocate(64).handle), context);
    await registry.unregister(name, context);
  }

  #register(step: Step & { do: "register" }): void {
    const { registry } = this.harness;
    const hold = step.session === undefined ? undefined : this.#holds[step.session];
    const base = hold === undefined ? { ...context, owner: step.owner } : within(hold);
    const shown = registry.statuses().find(({ name }) => name === step.name);
    const { isDryRun, leaseMs, isIdempotent } = step;
    const registered = registry.register(
      request(step.name, (this.#allocations[step.handle] as FakeAllocation).handle, {
        byteSize: step.isTooLarge ? 129n : 64n,
        exporter: step.exporter === undefined ? undefined : this.#exporters[step.exporter],
        replaces: step.replaces ? shown?.generation : undefined,
        isDryRun,
        leaseMs,
        isIdempotent,
      }),
      this.#abortable(base, step.isAbortable),
    );
    this.#track(
      registered.then(({ generation, state }) => {
        if (state === "registering") this.#dryRuns.add(generation);
        const { changes } = this.harness;
        const isShown = changes.some(
          ({ kind, region }) =>
            (kind === "registered" || kind === "adopted") && region.generation === generation,
        );
        expect(isShown).toBe(state !== "registering");
      }),
    );
  }

  #adopt(index: number): void {
    const { registry, journal, clock } = this.harness;
    const record = {
      generation: BigInt(index + 1),
      name: names[index] as string,
      handle: (this.#allocations[index] as FakeAllocation).handle,
      deviceId: 7,
      deviceUuid: "GPU-00000000-0000-0000-0000-000000000000",
      byteSize: 64n,
      offset: 0n,
      owner: "alice",
      session: null,
      protocol: "http" as const,
      registeredAt: clock.now() - 1,
      leaseMs: index === 0 ? null : 4000,
      exporter: this.#exporters[index] ?? null,
      labels: new Map(),
    };
    journal.records.set(record.generation, record);
    this.#track(registry.adopt(record, { whenUsable: this.#usable.promise, allowsUnverified: false }));
  }

  #resume(slot: number): void {
    const hold = this.#holds[slot];
    if (hold === undefined) return;
    try {
      this.#holds[slot] = this.harness.registry.sessions.resume(hold.secret, {
        owner: "anonymous",
        isAdmin: false,
        session: null,
      });
    } catch (error) {
      expect((error as RegistryError).code).toBe("UNAUTHENTICATED");
      this.#holds[slot] = undefined;
    }
  }

  async #read(events: AsyncIterable<WatchEvent>): Promise<void> {
    try {
      for await (const event of events) this.#told.push(event);
    } catch (error) {
      if ((error as RegistryError).code !== "CANCELLED") this.faults.push(error);
    }
  }

  #abortable(base: CallContext, isAbortable: boolean): CallContext {
    if (!isAbortable) return base;
    const abort = new AbortController();
    this.#aborts.push(abort);
    return { ...base, signal: abort.signal };
  }

  #settleAll(held: Held[]): void {
    for (const call of [...held]) call.settle(false);
  }

  #track(call: Promise<unknown>): void {
    this.#unsettled++;
    call
      .catch((error: unknown) => {
        // Anything but a RegistryError is the fake telling of an overlap or of a use after the close.
        if (!(error instanceof RegistryError) || error.message.includes("internal error")) throw error;
      })
      .then(
        () => this.#unsettled--,
        (error: unknown) => {
          this.#unsettled--;
          this.faults.push(error);
        },
      );
  }
}

function driverFault(): Error {
  return driverError(1, "CUDA_ERROR_INVALID_VALUE");
}

/** Waits in `held` until it is settled. */
function hold(held: Held[], fault: () => Error): Promise<void> {
  const { promise, resolve, reject } = createDeferred();
  const call = {
    settle: (refuses: boolean) => {
      held.splice(held.indexOf(call), 1);
      if (refuses) reject(fault());
      else resolve();
    },
  };
  held.push(call);
  return promise;
}

function pick<T>(items: readonly T[], which: number): T | undefined {
  return items[which % items.length];
}
