import { expect, test } from "vitest";
import { FakeClock } from "../helpers/fake-clock.js";
import { context, createHarness, expectRejection, request } from "../helpers/registry-harness.js";

test.each([-1, 300_001, Number.NaN, Number.POSITIVE_INFINITY])(
  "no call waits for %d ms, and none of those changes anything",
  async (waitMs) => {
    const clock = new FakeClock();
    const { registry, driver } = createHarness({ clock });
    const text = `a wait lasts 0 to 300 seconds, got ${waitMs / 1000}`;
    await registry.register(request("r", driver.allocate(64).handle), context);
    await expectRejection(registry.waitFor("r", waitMs, context), "INVALID_ARGUMENT", text);
    await expectRejection(registry.release("r", { waitMs }, context), "INVALID_ARGUMENT", text);
    expect([registry.status("r").state, clock.pending]).toEqual(["ready", 0]);
  },
);

test("a call waits for five minutes, and not longer", async () => {
  const clock = new FakeClock();
  const { registry } = createHarness({ clock });
  const waiting = registry.waitFor("r", 300_000, context);
  clock.advance(299_999);
  expect(clock.pending).toBe(1);
  clock.advance(1);
  await expectRejection(waiting, "DEADLINE_EXCEEDED", /did not become ready in the time given/);
  expect(clock.pending).toBe(0);
});
