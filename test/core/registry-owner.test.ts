import { expect, test } from "vitest";
import type { RegistryPolicy } from "../../src/core/policy.js";
import type { CallContext } from "../../src/core/region.js";
import { admin, alice, bob, createLifecycle, within } from "../helpers/lifecycle-harness.js";
import { context, expectRejection, request } from "../helpers/registry-harness.js";

/** A registry with a region of alice's, one of bob's and one of nobody's. */
async function setUp(policy: Partial<RegistryPolicy> = {}, limits = {}) {
  const harness = createLifecycle({
    policy: { access: "shared", unregisterAll: "all", ...policy },
    limits,
  });
  const { driver, registry } = harness;
  for (const [name, caller] of [
    ["a", alice],
    ["b", bob],
    ["n", context],
  ] as const) {
    await registry.register(request(name, driver.allocate(64).handle, { leaseMs: 60_000 }), caller);
  }
  const seenBy = (caller: CallContext) => registry.statuses(caller).map(({ name }) => name);
  return { ...harness, seenBy };
}

test("where access is shared everyone sees and unregisters everything", async () => {
  const { registry, seenBy } = await setUp();
  expect(seenBy(bob)).toEqual(["a", "b", "n"]);
  expect(registry.status("a", bob).owner).toBe("alice");
  await registry.unregister("a", bob);
  await registry.unregister("n", bob);
  expect(seenBy(alice)).toEqual(["b"]);
});

test("contents and renewals are their owner's and an admin's also where access is shared", async () => {
  const { registry } = await setUp();
  const text =
    "shared memory region 'a' belongs to another client; call as its owner or with an admin's token";
  for (const caller of [bob, context]) {
    expect(() => registry.pin("a", null, caller)).toThrow(text);
    await expectRejection(registry.renew("a", {}, caller), "PERMISSION_DENIED", text);
  }
  for (const caller of [alice, admin]) {
    registry.pin("a", null, caller).release();
    await registry.renew("a", {}, caller);
  }
  registry.pin("n", null, bob).release();
});

test("where access is by owner each sees and changes his own", async () => {
  const { registry, seenBy, driver } = await setUp({ access: "owner" });
  expect([seenBy(alice), seenBy(bob), seenBy(context)]).toEqual([["a"], ["b"], ["n"]]);
  expect(() => registry.status("a", bob)).toThrow("Unable to find cuda shared memory region: 'a'");
  const denied = [
    registry.unregister("a", bob),
    registry.release("a", {}, bob),
    registry.renew("a", {}, bob),
    registry.register(request("a", driver.allocate(64).handle, { replaces: 1n }), bob),
  ];
  for (const call of denied) await expectRejection(call, "PERMISSION_DENIED", /belongs to another client/);
  expect(() => registry.pin("a", null, bob)).toThrow("belongs to another client");
  await expectRejection(
    registry.register(request("a", driver.allocate(64).handle), bob),
    "ALREADY_EXISTS",
    /already in manager/,
  );
  expect((await registry.list({}, bob)).regions.map(({ name }) => name)).toEqual(["b"]);
  await registry.unregister("a", alice);
  expect(seenBy(alice)).toEqual([]);
});

test("an admin sees and changes everything", async () => {
  const { registry, seenBy } = await setUp({ access: "owner" });
  expect(seenBy(admin)).toEqual(["a", "b", "n"]);
  await registry.unregister("a", admin);
  await registry.release("b", { isForced: true }, admin);
  expect(seenBy(admin)).toEqual(["n"]);
});

test.each([
  ["shared", "all", bob, []],
  ["owner", "all", bob, ["a"]],
  ["owner", "all", admin, []],
  ["shared", "own", bob, ["a", "n"]],
  ["owner", "own", admin, ["a", "b", "n"]],
  ["shared", "own", context, ["a", "b"]],
] as const)(
  "access %s, unregister-all %s: of those of %o are left %j",
  async (access, unregisterAll, caller, left) => {
    const { registry, names } = await setUp({ access, unregisterAll });
    await registry.unregisterAll(caller);
    expect(names()).toEqual(left);
  },
);

test("unregister-all none refuses everyone, and leaves everything", async () => {
  const { registry, names } = await setUp({ unregisterAll: "none" });
  for (const caller of [alice, admin, context]) {
    await expectRejection(
      registry.unregisterAll(caller),
      "PERMISSION_DENIED",
      "this service unregisters regions by name only (--unregister-all none)",
    );
  }
  expect(names()).toEqual(["a", "b", "n"]);
  await registry.unregister("a", bob);
});

test("a session's calls are its owner's: with a token the principal's, without one its own", async () => {
  const { registry, driver, openSession, names } = await setUp({ access: "owner", unregisterAll: "own" });
  const [hers, nobodys] = [openSession(0, "alice"), openSession()];
  await registry.register(request("s", driver.allocate(64).handle), within(hers));
  await registry.register(request("t", driver.allocate(64).handle), within(nobodys));
  registry.pin("s", null, alice).release();
  registry.pin("a", null, within(hers)).release();
  expect(() => registry.pin("t", null, alice)).toThrow("belongs to another client");
  expect(() => registry.pin("t", null, within(openSession()))).toThrow("belongs to another client");
  await registry.unregisterAll(within(nobodys));
  expect(names()).toEqual(["a", "b", "n", "s"]);
});

test("each owner has bytes of his own to register", async () => {
  const { registry, driver } = await setUp({}, { maxOwnerBytes: 128n });
  const register = (name: string, caller: CallContext, byteSize = 64n) =>
    registry.register(request(name, driver.allocate(128).handle, { byteSize }), caller);
  await register("a2", alice);
  await expectRejection(
    register("a3", alice, 1n),
    "RESOURCE_EXHAUSTED",
    /the regions of 'alice' have 128 bytes; with the 1 of this one they would exceed the 128/,
  );
  await register("b2", bob);
  await registry.unregister("a", bob);
  await register("a3", alice);
});

test("sessions of one principal share his bytes, those of nobody have their own", async () => {
  const { registry, driver, openSession } = createLifecycle({ limits: { maxOwnerBytes: 64n } });
  const register = (name: string, caller: CallContext) =>
    registry.register(request(name, driver.allocate(64).handle), caller);
  await register("a", within(openSession(0, "alice")));
  await expectRejection(register("b", within(openSession(0, "alice"))), "RESOURCE_EXHAUSTED", /'alice'/);
  await register("c", within(openSession()));
  await register("d", within(openSession()));
});
