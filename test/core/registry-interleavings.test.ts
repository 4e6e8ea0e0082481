import fc from "fast-check";
import { expect, test } from "vitest";
import { DriverError } from "../../src/core/driver.js";
import { RegistryError } from "../../src/core/errors.js";
import type { IpcMemHandle } from "../../src/core/handle.js";
import type { RegionPin, RegionState } from "../../src/core/region.js";
import { driverError } from "../helpers/fake-driver.js";
import { context, contextWith, createHarness, request, untilIdle } from "../helpers/registry-harness.js";

const name = fc.constantFrom("a", "b", "c");
const handleIndex = fc.nat(2);

type Step =
  | { do: "register"; name: string; handle: number; tooLarge: boolean; abortable: boolean }
  | { do: "unregister"; name: string }
  | { do: "unregisterAll" }
  | { do: "abort"; which: number }
  | { do: "pin"; name: string }
  | { do: "copy"; which: number }
  | { do: "release"; which: number }
  | { do: "driver answers"; which: number; refuses: boolean };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("register" as const),
      name,
      handle: handleIndex,
      tooLarge: fc.nat(9).map((n) => n === 0),
      abortable: fc.boolean(),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("unregister" as const), name }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("unregisterAll" as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("abort" as const), which: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("pin" as const), name }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("copy" as const), which: fc.nat() }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("release" as const), which: fc.nat() }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("driver answers" as const),
      which: fc.nat(),
      refuses: fc.nat(4).map((n) => n === 0),
    }),
  },
);

/** Steps, and how far the microtask queue gets before the next one: null until it is empty. */
const schedule = fc.array(fc.tuple(step, fc.option(fc.nat(6), { nil: null, freq: 2 })), { maxLength: 60 });

interface Call {
  settle(refuses: boolean): void;
}

class Run {
  readonly harness = createHarness();
  readonly allocations = [64, 64, 128].map((size) => this.harness.driver.allocate(size));
  readonly driverCalls: Call[] = [];
  readonly aborts: AbortController[] = [];
  readonly pins: RegionPin[] = [];
  readonly calls: Promise<unknown>[] = [];
  readonly handleOf = new Map<bigint, IpcMemHandle>();
  readonly faults: unknown[] = [];
  unsettled = 0;

  constructor() {
    const { driver } = this.harness;
    const wait = () =>
      new Promise<void>((resolve, reject) => {
        const call = {
          settle: (refuses: boolean) => {
            this.driverCalls.splice(this.driverCalls.indexOf(call), 1);
            if (refuses) reject(driverError(1, "CUDA_ERROR_INVALID_VALUE"));
            else resolve();
          },
        };
        this.driverCalls.push(call);
      });
    driver.beforeOpen = wait;
    driver.beforeClose = wait;
    driver.beforeCopy = wait;
  }

  perform(step: Step): void {
    const { registry } = this.harness;
    switch (step.do) {
      case "register": {
        const abort = new AbortController();
        if (step.abortable) this.aborts.push(abort);
        const handle = (this.allocations[step.handle] as (typeof this.allocations)[number]).handle;
        const byteSize = step.tooLarge ? 129n : 64n;
        const register = registry.register(
          request(step.name, handle, { byteSize }),
          contextWith(abort.signal),
        );
        this.#track(register.then(({ generation }) => this.handleOf.set(generation, handle)));
        break;
      }
      case "unregister":
        this.#track(registry.unregister(step.name, context));
        break;
      case "unregisterAll":
        this.#track(registry.unregisterAll(context));
        break;
      case "abort":
        pick(this.aborts, step.which)?.abort();
        break;
      case "pin":
        try {
          this.pins.push(registry.pin(step.name, null, context));
        } catch (error) {
          expect(["NOT_FOUND", "FAILED_PRECONDITION"]).toContain((error as RegistryError).code);
        }
        break;
      case "copy": {
        const pin = pick(this.pins, step.which);
        if (pin !== undefined) this.#track(pin.read(0n, new Uint8Array(1)));
        break;
      }
      case "release":
        pick(this.pins, step.which)?.release();
        break;
      case "driver answers":
        pick(this.driverCalls, step.which)?.settle(step.refuses);
    }
  }

  /** What has to hold whenever nothing runs but the driver. */
  check(): void {
    const { driver, registry, changes } = this.harness;
    expect(driver.openMappings).toBe(registry.mappings);
    expect(driver.redundantCloses).toBe(0);

    const model = new Map<string, { generation: bigint; state: RegionState }>();
    for (const { kind, region, revision, cause } of changes) {
      // Anything else would be the fake telling of an overlap or of a use after the close.
      if (kind === "close_failed") expect(cause).toBeInstanceOf(DriverError);
      expect(revision).toBeLessThanOrEqual(registry.revision);
      if (kind === "unregistered") model.delete(region.name);
      else model.set(region.name, { generation: region.generation, state: region.state });
    }
    const shown = registry.statuses().map(({ name, generation, state }) => [name, { generation, state }]);
    expect(shown).toEqual([...model].sort(([a], [b]) => (a < b ? -1 : 1)));
    expect(registry.revision).toBe(BigInt(changes.length));

    const handles = new Set<IpcMemHandle>();
    for (const { generation, allocationByteSize } of registry.statuses()) {
      const handle = this.handleOf.get(generation);
      if (handle !== undefined) handles.add(handle);
      expect(allocationByteSize).toBeGreaterThan(0n);
    }
    expect(registry.mappings).toBeGreaterThanOrEqual(handles.size);
  }

  /** Lets everything end well, and answers what is left. */
  async end() {
    const { driver, registry } = this.harness;
    for (const pin of this.pins) pin.release();
    driver.beforeOpen = driver.beforeClose = driver.beforeCopy = undefined;
    do {
      for (const call of [...this.driverCalls]) call.settle(false);
      await untilIdle();
    } while (this.driverCalls.length > 0 || this.unsettled > 0);
    await registry.unregisterAll(context);
    this.check();
    return { regions: registry.statuses(), mappings: registry.mappings, left: driver.openMappings };
  }

  #track(call: Promise<unknown>): void {
    this.unsettled++;
    call
      .catch((error: unknown) => {
        // Anything but a RegistryError is the fake telling of an overlap or of a use after the close.
        if (!(error instanceof RegistryError) || error.message.includes("internal error")) throw error;
      })
      .then(
        () => this.unsettled--,
        (error: unknown) => {
          this.unsettled--;
          this.faults.push(error);
        },
      );
  }
}

function pick<T>(items: readonly T[], which: number): T | undefined {
  return items[which % items.length];
}

test("whatever the order of calls, aborts, pins and driver answers, mappings are closed exactly once", async () => {
  await fc.assert(
    fc.asyncProperty(schedule, async (steps) => {
      const run = new Run();
      for (const [step, turns] of steps) {
        run.perform(step);
        if (turns === null) {
          await untilIdle();
          run.check();
        } else for (let turn = 0; turn < turns; turn++) await null;
      }
      expect(await run.end()).toEqual({ regions: [], mappings: 0, left: 0 });
      expect(run.faults).toEqual([]);
    }),
    { numRuns: 400 },
  );
});
