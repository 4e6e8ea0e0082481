import { expect, test } from "vitest";
import { type EncodableRegion, EncodedRegions } from "../../src/core/encoded-regions.js";
import type { CallContext } from "../../src/core/region.js";
import { context, createHarness, request } from "../helpers/registry-harness.js";

/** Regions as text, and how many of them were encoded. */
async function setUp(count: number, access: "shared" | "owner" = "shared") {
  const { driver, registry } = createHarness({ policy: { access, unregisterAll: "all" } });
  const { handle } = driver.allocate(64);
  let encoded = 0;
  const regions = new EncodedRegions(registry, {
    encode(part: readonly EncodableRegion[]) {
      encoded += part.length;
      return Buffer.from(part.map(({ name }) => `${name} `).join(""));
    },
    join: (parts) => Buffer.concat(parts),
  });
  const nameOf = (number: number) => String(number).padStart(5, "0");
  const register = (name: string, by: CallContext = context) => registry.register(request(name, handle), by);
  for (let number = 0; number < count; number++) await register(nameOf(number));
  const names = () => registry.statuses().map(({ name }) => name);
  const seen = async (by: CallContext = context) =>
    (await regions.visibleTo(by)).toString().split(" ").slice(0, -1);
  return { registry, regions, register, nameOf, names, seen, encodings: () => encoded };
}

test("nothing is encoded twice: not after pins, nor after a change, but what is near it", async () => {
  const { registry, regions, register, nameOf, names, seen, encodings } = await setUp(5000);
  expect(await seen()).toEqual(names());
  expect(encodings()).toBe(5000);
  const known = regions.visibleTo(context);
  using _pin = registry.pin(nameOf(7), null, context);
  await registry.unregister(nameOf(7), context);
  expect(regions.visibleTo(context)).toBe(known);

  await registry.unregister(nameOf(2500), context);
  await register("00000-and-a-half");
  expect(await seen()).toEqual(names());
  expect(encodings()).toBeLessThanOrEqual(5000 + 2 * 512);
});

test("an answer is of one moment, however much changes while it is made", async () => {
  const { registry, regions, register, nameOf, names, seen } = await setUp(2000);
  const before = names();
  const asked = seen();
  // It begins in a later turn, and is of that.
  await Promise.resolve();
  await Promise.resolve();
  for (let number = 0; number < 2000; number += 3) void registry.unregister(nameOf(number), context);
  await register("last");
  const moments = [before, names()];
  expect(moments).toContainEqual(await asked);
  expect(await seen()).toEqual(names());
  expect(regions.visibleTo(context)).toBeInstanceOf(Buffer);
});

test("those who ask while one is made share the next, which has what each of them did before", async () => {
  const { regions, register, seen } = await setUp(100);
  const first = seen();
  await register("new");
  const [second, third] = [regions.visibleTo(context), regions.visibleTo(context)];
  expect(second).toBe(third);
  expect(String(await second)).toContain("new");
  expect((await first).length).toBeGreaterThanOrEqual(100);
});

test("where regions are their owners' alone, each is answered with his, an admin with all", async () => {
  const { register, seen } = await setUp(0, "owner");
  const [alice, bob] = ["alice", "bob"].map((owner) => ({ ...context, owner })) as [CallContext, CallContext];
  await register("a", alice);
  await register("b", bob);
  await register("c", alice);
  expect(await seen(alice)).toEqual(["a", "c"]);
  expect(await seen(bob)).toEqual(["b"]);
  expect(await seen({ ...context, owner: "carol" })).toEqual([]);
  expect(await seen({ ...bob, isAdmin: true })).toEqual(["a", "b", "c"]);
});
