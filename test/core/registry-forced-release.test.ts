import { expect, test } from "vitest";
import { RegistryError } from "../../src/core/errors.js";
import { FakeClock } from "../helpers/fake-clock.js";
import {
  context,
  contextWith,
  createHarness,
  expectRejection,
  request,
  untilIdle,
} from "../helpers/registry-harness.js";

test("a caller who leaves before the wait is over has nothing taken by force", async () => {
  const clock = new FakeClock();
  const { driver, registry } = createHarness({ clock });
  await registry.register(request("r", driver.allocate(4096).handle), context);
  const pin = registry.pin("r", null, context);
  const left = new AbortController();
  const released = registry.release("r", { waitMs: 60_000, isForced: true }, contextWith(left.signal));
  await untilIdle();
  left.abort(new RegistryError("CANCELLED", "the client cancelled the call"));
  await expectRejection(released, "CANCELLED", "the client cancelled the call");
  await pin.read(0n, new Uint8Array(64));
  pin.release();
  await untilIdle();
  expect(registry.statuses()).toEqual([]);
  expect(registry.mappings).toBe(0);
  expect(clock.pending).toBe(0);
});
