import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { CallContext } from "../../src/core/region.js";
import { driverError } from "../helpers/fake-driver.js";
import { context, createHarness, expectRejection, request, untilIdle } from "../helpers/registry-harness.js";

const by = (owner: string): CallContext => ({ ...context, owner });

describe("a limit of regions", () => {
  const full = (name: string) =>
    `failed to register shared memory region '${name}': there are as many regions as this service takes (2, --max-regions); unregister some first`;

  test("refuses one more, and takes it once another is unregistered", async () => {
    const { driver, registry, names } = createHarness({ limits: { maxRegions: 2 } });
    const { handle } = driver.allocate(64);
    await registry.register(request("a", handle), context);
    await registry.register(request("b", handle), context);
    await expectRejection(registry.register(request("c", handle), context), "RESOURCE_EXHAUSTED", full("c"));
    expect(driver.openCalls).toBe(1);
    await registry.unregister("a", context);
    await registry.register(request("c", handle), context);
    expect(names()).toEqual(["b", "c"]);
  });

  test("counts registers under way, and forgets those that fail", async () => {
    const { driver, registry, names } = createHarness({ limits: { maxRegions: 2 } });
    const stale = driver.allocate(64);
    stale.free();
    const both = ["a", "b"].map((name) => registry.register(request(name, stale.handle), context));
    await expectRejection(
      registry.register(request("c", stale.handle), context),
      "RESOURCE_EXHAUSTED",
      full("c"),
    );
    for (const register of both) await expectRejection(register, "INVALID_ARGUMENT", /invalid args/);
    const { handle } = driver.allocate(64);
    await registry.register(request("c", handle), context);
    await registry.register(request("d", handle), context);
    expect(names()).toEqual(["c", "d"]);
  });

  test("counts a region that could not be closed", async () => {
    const { driver, registry } = createHarness({ limits: { maxRegions: 1 } });
    const { handle } = driver.allocate(64);
    await registry.register(request("a", handle), context);
    driver.beforeClose = () => {
      throw driverError(1, "CUDA_ERROR_INVALID_VALUE", "cuIpcCloseMemHandle");
    };
    await expectRejection(registry.unregister("a", context), "INTERNAL", /close/);
    await expectRejection(
      registry.register(request("b", handle), context),
      "RESOURCE_EXHAUSTED",
      /--max-regions/,
    );
  });

  test("a name that is taken is told so first", async () => {
    const { driver, registry } = createHarness({ limits: { maxRegions: 1 } });
    const { handle } = driver.allocate(64);
    await registry.register(request("a", handle), context);
    await expectRejection(registry.register(request("a", handle), context), "ALREADY_EXISTS", /already/);
  });
});

describe("a limit of bytes for each owner", () => {
  test("counts what an owner's regions were registered with, and no other's", async () => {
    const { driver, registry, names } = createHarness({ limits: { maxOwnerBytes: 100n } });
    const { handle } = driver.allocate(128);
    await registry.register(request("a", handle, { byteSize: 60n }), by("alice"));
    await expectRejection(
      registry.register(request("b", handle, { byteSize: 41n }), by("alice")),
      "RESOURCE_EXHAUSTED",
      "failed to register shared memory region 'b': the regions of 'alice' have 60 bytes; with the 41 of this one they would exceed the 100 that one client may register (--max-owner-bytes); unregister some first",
    );
    await registry.register(request("b", handle, { byteSize: 40n }), by("alice"));
    await registry.register(request("c", handle, { byteSize: 100n }), by("bob"));
    // Whoever unregisters it, the bytes come back to the owner.
    await registry.unregister("a", by("bob"));
    await registry.register(request("d", handle, { byteSize: 60n }), by("alice"));
    expect(names()).toEqual(["b", "c", "d"]);
  });

  test("counts the largest size there is exactly", async () => {
    const { driver, registry } = createHarness({ limits: { maxOwnerBytes: 2n ** 63n } });
    const { handle } = driver.allocate(64);
    const huge = registry.register(request("a", handle, { byteSize: 2n ** 64n - 1n }), context);
    await expectRejection(huge, "RESOURCE_EXHAUSTED", /18446744073709551615/);
    await registry.register(request("a", handle), context);
  });
});

describe("a limit of bytes for each device", () => {
  test("counts allocations, once for all regions that share one, and each device by itself", async () => {
    const { driver, registry, names } = createHarness({ limits: { maxDeviceBytes: 200n } });
    const large = driver.allocate(150);
    const small = driver.allocate(51);
    await registry.register(request("a", large.handle, { byteSize: 1n }), context);
    await registry.register(request("b", large.handle, { byteSize: 150n }), context);
    await expectRejection(
      registry.register(request("c", small.handle, { byteSize: 1n }), context),
      "RESOURCE_EXHAUSTED",
      "failed to register shared memory region 'c': its allocation of 51 bytes would exceed the 200 that may be mapped on device 0 (--max-device-bytes); unregister regions on that device first",
    );
    expect([registry.mappings, driver.openMappings]).toEqual([1, 1]);
    const elsewhere = driver.allocate(200, 1);
    await registry.register(request("d", elsewhere.handle, { deviceId: 1n }), context);
    await registry.unregister("a", context);
    await expectRejection(
      registry.register(request("c", small.handle, { byteSize: 1n }), context),
      "RESOURCE_EXHAUSTED",
      /--max-device-bytes/,
    );
    await registry.unregister("b", context);
    await registry.register(request("c", small.handle, { byteSize: 1n }), context);
    expect(names()).toEqual(["c", "d"]);
  });

  test("counts a mapping while a pin holds its region open", async () => {
    const { driver, registry } = createHarness({ limits: { maxDeviceBytes: 100n } });
    const [first, second] = [driver.allocate(100), driver.allocate(100)];
    await registry.register(request("a", first.handle), context);
    const pin = registry.pin("a", null, context);
    await registry.unregister("a", context);
    await expectRejection(
      registry.register(request("b", second.handle), context),
      "RESOURCE_EXHAUSTED",
      /--max-device-bytes/,
    );
    pin.release();
    await untilIdle();
    await registry.register(request("b", second.handle), context);
  });

  test("a size over the allocation is told first", async () => {
    const { driver, registry } = createHarness({ limits: { maxDeviceBytes: 10n } });
    const { handle } = driver.allocate(64);
    const register = registry.register(request("a", handle, { byteSize: 65n }), context);
    await expectRejection(register, "INVALID_ARGUMENT", /exceeds the 64 bytes/);
  });
});

test("whatever the order of registers, unregisters and driver answers, no limit is ever exceeded and nothing stays counted", async () => {
  const limits = { maxRegions: 3, maxDeviceBytes: 200n, maxOwnerBytes: 150n };
  const step = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant("register" as const),
        name: fc.constantFrom("a", "b", "c", "d", "e"),
        owner: fc.constantFrom("alice", "bob"),
        handle: fc.nat(3),
        byteSize: fc.constantFrom(1n, 50n, 80n, 101n),
        aborted: fc.boolean(),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant("unregister" as const),
        name: fc.constantFrom("a", "b", "c", "d", "e"),
      }),
    },
    { weight: 4, arbitrary: fc.record({ do: fc.constant("answer" as const), refuses: fc.nat(5) }) },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(step, fc.nat(3)), { maxLength: 50 }), async (steps) => {
      const { driver, registry } = createHarness({ limits });
      const allocations = [50, 80, 100, 120].map((size) => driver.allocate(size));
      const handleOf = new Map<bigint, number>();
      const waiting: ((refuses: boolean) => void)[] = [];
      const wait = () =>
        new Promise<void>((resolve, reject) => {
          waiting.push((refuses) =>
            refuses ? reject(driverError(1, "CUDA_ERROR_INVALID_VALUE")) : resolve(),
          );
        });
      driver.beforeOpen = wait;
      driver.beforeClose = wait;
      const calls: Promise<unknown>[] = [];
      const checkLimits = () => {
        const regions = registry.statuses();
        expect(regions.length).toBeLessThanOrEqual(limits.maxRegions);
        for (const owner of ["alice", "bob"]) {
          const sizes = regions.filter((region) => region.owner === owner).map(({ byteSize }) => byteSize);
          expect(sizes.reduce((sum, size) => sum + size, 0n)).toBeLessThanOrEqual(limits.maxOwnerBytes);
        }
        const mapped = new Map(
          regions.map((region) => [handleOf.get(region.generation), region.allocationByteSize]),
        );
        mapped.delete(undefined);
        expect([...mapped.values()].reduce((sum, size) => sum + size, 0n)).toBeLessThanOrEqual(
          limits.maxDeviceBytes,
        );
      };
      for (const [act, turns] of steps) {
        if (act.do === "register") {
          const abort = new AbortController();
          const { handle } = allocations[act.handle] as (typeof allocations)[number];
          const register = registry
            .register(request(act.name, handle, { byteSize: act.byteSize }), {
              ...by(act.owner),
              signal: abort.signal,
            })
            .then((region) => handleOf.set(region.generation, act.handle));
          calls.push(register.catch(() => {}));
          if (act.aborted) abort.abort();
        } else if (act.do === "unregister") {
          calls.push(registry.unregister(act.name, context).catch(() => {}));
        } else {
          waiting.shift()?.(act.refuses === 0);
        }
        for (let turn = 0; turn < turns; turn++) await null;
        if (turns === 3) await untilIdle();
        checkLimits();
      }
      driver.beforeOpen = driver.beforeClose = undefined;
      for (let ended = false; !ended; ) {
        for (const answer of waiting.splice(0)) answer(false);
        await untilIdle();
        ended = waiting.length === 0;
      }
      await Promise.all(calls);
      checkLimits();
      await registry.unregisterAll(context);
      // What was counted is counted no more: exactly as much fits as into a new registry.
      const [, , hundred] = allocations as [unknown, unknown, (typeof allocations)[number]];
      const another = driver.allocate(100);
      await registry.register(request("a", hundred.handle, { byteSize: 75n }), by("alice"));
      await registry.register(request("b", another.handle, { byteSize: 75n }), by("alice"));
      await registry.register(request("c", another.handle, { byteSize: 100n }), by("bob"));
      await registry.unregisterAll(context);
      expect(driver.openMappings).toBe(0);
    }),
    { numRuns: 300 },
  );
});
