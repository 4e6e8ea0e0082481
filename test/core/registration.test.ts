import { expect, test } from "vitest";
import { Registration } from "../../src/core/registration.js";
import { FakeDriver } from "../helpers/fake-driver.js";
import { context, request } from "../helpers/registry-harness.js";

test("whoever waits for the end of a region is called once, unless it no longer waits", async () => {
  const { handle } = new FakeDriver().allocate(64);
  const origin = { context, startedAt: 0, reason: "requested" } as const;
  const registration = new Registration(request("r", handle), 1n, origin);
  const called: string[] = [];
  registration.onEnded(() => called.push("waiting"));
  registration.onEnded(() => called.push("stopped"))();
  const ended = registration.untilEnded();
  registration.enter("draining", "requested");
  expect(called).toEqual([]);
  registration.enter("close_failed", "requested");
  registration.enter("gone", "requested");
  await ended;
  expect(called).toEqual(["waiting"]);
});
