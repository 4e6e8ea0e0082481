import { expect, test } from "vitest";
import { forEachBounded } from "../../src/core/for-each-bounded.js";
import { createDeferred } from "../helpers/deferred.js";
import { untilIdle } from "../helpers/registry-harness.js";

test("at most so many are at work at once, each item is worked on once, in order", async () => {
  const gates = Array.from({ length: 10 }, () => createDeferred());
  const started: number[] = [];
  const done = forEachBounded([...gates.keys()], 3, (item) => {
    started.push(item);
    return (gates[item] as (typeof gates)[number]).promise;
  });
  await untilIdle();
  expect(started).toEqual([0, 1, 2]);
  gates[1]?.resolve();
  await untilIdle();
  expect(started).toEqual([0, 1, 2, 3]);
  for (const gate of gates) gate.resolve();
  await done;
  expect(started).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

test("no items are done at once", async () => {
  await forEachBounded([], 64, () => Promise.reject(new Error("nothing to work on")));
});
