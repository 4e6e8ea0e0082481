import { expect, test } from "vitest";
import { inSlices, roomForAnother } from "../../src/core/event-loop.js";

/** Holds the event loop. */
function work(ms: number): true {
  const end = performance.now() + ms;
  while (performance.now() < end);
  return true;
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** Turns of the event loop that go by until `done` is settled. */
async function turnsUntil(done: Promise<unknown>): Promise<number> {
  let isDone = false;
  const end = () => {
    isDone = true;
  };
  done.then(end, end);
  let turns = 0;
  for (; !isDone; turns++) await nextTurn();
  return turns;
}

test("every item is worked on, in order, until the work says that it is done", async () => {
  const seen: number[] = [];
  await inSlices([1, 2, 3, 4], (item) => {
    seen.push(item);
    return item < 3;
  });
  expect(seen).toEqual([1, 2, 3]);
  await expect(
    inSlices([1], () => {
      throw new Error("cannot");
    }),
  ).rejects.toThrow("cannot");
});

test("what does not take long is done before anything else has its turn", async () => {
  await nextTurn();
  let isDone = false;
  const done = inSlices([1, 2, 3], () => true).then(() => {
    isDone = true;
  });
  await Promise.resolve();
  await Promise.resolve();
  await done;
  expect(isDone).toBe(true);
  expect(await turnsUntil(inSlices([1, 2, 3], () => true))).toBeLessThanOrEqual(1);
});

test("what takes long is interrupted every few milliseconds, and what is done by several at once no less", async () => {
  await nextTurn();
  const items = Array.from({ length: 10 }, (_, index) => index);
  const jobs = [1, 2, 3, 4].map(() => inSlices(items, () => work(2)));
  // 80 ms of work, of which no turn has more than 5 and an item.
  expect(await turnsUntil(Promise.all(jobs))).toBeGreaterThanOrEqual(11);
});

test("many regions come or go at 128 in each turn, in the order in which they asked", async () => {
  await nextTurn();
  const order: number[] = [];
  const asked = Array.from({ length: 1000 }, async (_, index) => {
    await roomForAnother();
    order.push(index);
  });
  await Promise.resolve();
  expect(order).toHaveLength(128);
  expect(await turnsUntil(Promise.all(asked))).toBeGreaterThanOrEqual(7);
  expect(order).toEqual([...order].sort((a, b) => a - b));
  await nextTurn();
  expect(roomForAnother()).toBeUndefined();
});
