import { describe, expect, it } from "vitest";
import { pause, withPauses } from "../../../src/http/v1/with-pauses.js";
import { createDeferred, type Deferred } from "../../helpers/deferred.js";
import { FakeClock } from "../../helpers/fake-clock.js";
import { untilIdle } from "../../helpers/registry-harness.js";

/** Items that come when they are given. */
function createSource() {
  const asked: Deferred<IteratorResult<string>>[] = [];
  let isReturned = false;
  const source: AsyncIterator<string> = {
    next() {
      const item = createDeferred<IteratorResult<string>>();
      asked.push(item);
      return item.promise;
    },
    return() {
      isReturned = true;
      return new Promise(() => {});
    },
  };
  return { source, asked, isReturned: () => isReturned };
}

describe("items with pauses", () => {
  it("come as they are given, one asked for at a time", async () => {
    const clock = new FakeClock();
    const { source, asked } = createSource();
    const items = withPauses(source, 1000, clock);
    const first = items.next();
    asked[0]?.resolve({ value: "a", done: false });
    expect([await first, asked.length, clock.pending]).toEqual([{ value: "a", done: false }, 1, 0]);
    const second = items.next();
    clock.advance(999);
    asked[1]?.resolve({ value: "b", done: false });
    expect([await second, asked.length, clock.pending]).toEqual([{ value: "b", done: false }, 2, 0]);
  });

  it("have a pause each time that none came, and lose no item by it", async () => {
    const clock = new FakeClock();
    const { source, asked } = createSource();
    const items = withPauses(source, 1000, clock);
    for (let i = 0; i < 3; i++) {
      const next = items.next();
      clock.advance(1000);
      expect(await next).toEqual({ value: pause, done: false });
    }
    expect(asked).toHaveLength(1);
    // It comes while nobody waits for it.
    asked[0]?.resolve({ value: "a", done: false });
    await untilIdle();
    expect(await items.next()).toEqual({ value: "a", done: false });
    const end = items.next();
    asked[1]?.resolve({ value: undefined, done: true });
    expect([await end, clock.pending]).toEqual([{ value: undefined, done: true }, 0]);
  });

  it("fail as their source does", async () => {
    const clock = new FakeClock();
    const { source, asked } = createSource();
    const items = withPauses(source, 1000, clock);
    const next = items.next();
    asked[0]?.reject(new Error("the cause"));
    await expect(next).rejects.toThrow("the cause");
    expect([await items.next(), clock.pending]).toEqual([{ value: undefined, done: true }, 0]);
  });

  it("end early without waiting for a source that waits", async () => {
    const clock = new FakeClock();
    const { source, isReturned } = createSource();
    const items = withPauses(source, 1000, clock);
    const next = items.next();
    clock.advance(1000);
    await next;
    expect(await items.return()).toEqual({ value: undefined, done: true });
    expect([isReturned(), clock.pending]).toEqual([true, 0]);
  });
});
