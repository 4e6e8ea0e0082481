import fc from "fast-check";
import { expect, test } from "vitest";
import type { RegionStatus } from "../../src/core/region.js";
import { RegionList } from "../../src/core/region-list.js";

const region = (name: string, generation = 0n) => ({ name, generation }) as RegionStatus;

test("a list of thousands stays sorted by bytes through additions, replacements and removals", () => {
  // Names in the order of their bytes, where JavaScript's own order would put the last of them first.
  const ordered = Array.from({ length: 3000 }, (_, i) =>
    i < 2500 ? `\uffff${String(i).padStart(4, "0")}` : `\u{10000}${i}`,
  );
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      const list = new RegionList();
      const shuffled = ordered.map((name, i) => ({ name, at: Math.imul(i ^ seed, 0x9e3779b1) }));
      shuffled.sort((a, b) => a.at - b.at);
      for (const { name } of shuffled) list.add(region(name));
      expect(list.statuses().map(({ name }) => name)).toEqual(ordered);

      for (const { name } of shuffled.slice(0, 1000)) list.replace(region(name, 1n));
      for (const { name } of shuffled.slice(500, 2900)) list.remove(name);
      const left = new Map(
        shuffled.flatMap(({ name }, i) => (i < 500 || i >= 2900 ? [[name, i < 500]] : [])),
      );
      expect(list.statuses()).toEqual(
        ordered.filter((name) => left.has(name)).map((name) => region(name, left.get(name) ? 1n : 0n)),
      );

      for (const name of left.keys()) list.remove(name);
      expect(list.statuses()).toEqual([]);
      list.add(region("again"));
      expect(list.statuses()).toEqual([region("again")]);
    }),
    { numRuns: 5 },
  );
});

test("an array that was handed out never changes", () => {
  const list = new RegionList();
  list.add(region("b"));
  const before = list.statuses();
  list.add(region("a"));
  list.replace(region("b", 1n));
  expect(before).toEqual([region("b")]);
  expect(list.statuses()).toEqual([region("a"), region("b", 1n)]);
  list.remove("b");
  expect(list.statuses()).toEqual([region("a")]);
});
