import fc from "fast-check";
import { expect, test } from "vitest";
import { RegistryError } from "../../src/core/errors.js";
import type { RegionPin, RegionState } from "../../src/core/region.js";
import { driverError } from "../helpers/fake-driver.js";
import { context, createHarness, request, untilIdle } from "../helpers/registry-harness.js";

const name = fc.constantFrom("a", "b", "c");

test("one call at a time, the registry does exactly what a map of names would", async () => {
  const action = fc.oneof(
    fc.record({
      do: fc.constant("register" as const),
      name,
      handle: fc.nat(2),
      byteSize: fc.constantFrom(64n, 100n),
    }),
    fc.record({ do: fc.constant("unregister" as const), name, closeFails: fc.boolean() }),
    fc.record({ do: fc.constant("pin" as const), name }),
    fc.record({ do: fc.constant("release" as const), name }),
  );
  interface Entry {
    handle: number;
    state: RegionState;
    pins: RegionPin[];
  }
  await fc.assert(
    fc.asyncProperty(fc.array(action, { maxLength: 40 }), async (actions) => {
      const { driver, registry } = createHarness();
      const allocations = [64, 64, 128].map((size) => driver.allocate(size));
      const model = new Map<string, Entry>();
      const usersOf = (handle: number) => [...model.values()].filter((entry) => entry.handle === handle);
      for (const act of actions) {
        const entry = model.get(act.name);
        let expected = "OK";
        let call: Promise<unknown> = Promise.resolve();
        driver.beforeClose = undefined;
        if (act.do === "register") {
          const { handle, byteSize } = act;
          if (entry) expected = "ALREADY_EXISTS";
          else if (usersOf(handle).some(({ state }) => state === "close_failed"))
            expected = "INVALID_ARGUMENT";
          else if (handle < 2 && byteSize === 100n) expected = "INVALID_ARGUMENT";
          else model.set(act.name, { handle, state: "ready", pins: [] });
          const allocation = allocations[handle] as (typeof allocations)[number];
          call = registry.register(request(act.name, allocation.handle, { byteSize }), context);
        } else if (act.do === "unregister") {
          driver.beforeClose = () => {
            if (act.closeFails) throw driverError(1, "CUDA_ERROR_INVALID_VALUE");
          };
          if (entry && entry.pins.length > 0) entry.state = "draining";
          else if (entry && act.closeFails && usersOf(entry.handle).length === 1) {
            entry.state = "close_failed";
            expected = "INTERNAL";
          } else model.delete(act.name);
          call = registry.unregister(act.name, context);
        } else if (act.do === "pin") {
          if (entry?.state === "ready" || entry?.state === "draining") {
            entry.pins.push(registry.pin(act.name, null, context));
          } else expect(() => registry.pin(act.name, null, context)).toThrow(RegistryError);
        } else {
          entry?.pins.pop()?.release();
          if (entry?.state === "draining" && entry.pins.length === 0) model.delete(act.name);
        }
        const outcome = await call.then(
          () => "OK",
          (error: RegistryError) => error.code,
        );
        await untilIdle();
        expect(outcome).toBe(expected);
        expect(registry.statuses().map(({ name, state, pins }) => ({ name, state, pins }))).toEqual(
          [...model.keys()].sort().map((name) => {
            const { state, pins } = model.get(name) as Entry;
            return { name, state, pins: pins.length };
          }),
        );
        const mapped = new Set([...model.values()].map(({ handle }) => handle)).size;
        expect([registry.mappings, driver.openMappings]).toEqual([mapped, mapped]);
      }
    }),
    { numRuns: 200 },
  );
});
