import { expect, test } from "vitest";
import { createDeferred } from "../helpers/deferred.js";
import { alice, bob, createLifecycle } from "../helpers/lifecycle-harness.js";
import { request, untilIdle } from "../helpers/registry-harness.js";

/** A registry that is to take up alice's region r once its driver can be asked. */
async function restarted(access: "shared" | "owner") {
  const before = createLifecycle();
  const { handle } = before.driver.allocate(64);
  await before.registry.register(request("r", handle, { leaseMs: 10_000 }), alice);
  const [record] = before.journal.records.values();
  if (record === undefined) throw new Error("nothing was written down");
  const now = createLifecycle({ policy: { access, unregisterAll: "all" }, generation: record.generation });
  const usable = createDeferred();
  const adopted = now.registry.adopt(record, { whenUsable: usable.promise, allowsUnverified: true });
  await untilIdle();
  return { ...now, usable, adopted };
}

test("a region that is still being taken up is UNAVAILABLE and not NOT_FOUND, and in no list", async () => {
  const { registry, states, usable, adopted } = await restarted("shared");
  const unavailable = { code: "UNAVAILABLE", message: expect.stringContaining("still being taken up") };
  expect(() => registry.status("r", alice)).toThrow(expect.objectContaining(unavailable));
  expect(() => registry.pin("r", null, alice)).toThrow(expect.objectContaining(unavailable));
  await expect(registry.renew("r", {}, alice)).rejects.toMatchObject(unavailable);
  expect(states()).toEqual([]);
  usable.resolve();
  // Its exporter's memory is not there any more, so it is not either.
  expect(await adopted).toMatchObject({ name: "r" });
  expect(() => registry.status("r", alice)).toThrow(expect.objectContaining({ code: "NOT_FOUND" }));
});

test("to who may not see it there is none", async () => {
  const { registry } = await restarted("owner");
  expect(() => registry.status("r", bob)).toThrow(expect.objectContaining({ code: "NOT_FOUND" }));
});
