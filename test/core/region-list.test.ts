import fc from "fast-check";
import { expect, test } from "vitest";
import { type Block, RegionList } from "../../src/core/region-list.js";

const region = (name: string) => ({ name });
const namesIn = (blocks: readonly Block<{ name: string }>[]) =>
  blocks.flatMap(({ regions }) => regions.map(({ name }) => name));

test("a list of thousands stays sorted by bytes through additions and removals", () => {
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
      expect(namesIn(list.blocks())).toEqual(ordered);

      for (const { name } of shuffled.slice(500, 2900)) list.remove(name);
      const left = new Set(shuffled.filter((_, i) => i < 500 || i >= 2900).map(({ name }) => name));
      expect(namesIn(list.blocks())).toEqual(ordered.filter((name) => left.has(name)));

      for (const name of left) list.remove(name);
      expect(list.blocks()).toEqual([]);
      list.add(region("again"));
      expect(list.blocks()).toEqual([{ regions: [region("again")], isHandedOut: true }]);
    }),
    { numRuns: 5 },
  );
});

test("what was handed out never changes, and a change leaves all blocks but its own as they are", () => {
  const name = fc.integer({ min: 0, max: 1999 }).map((number) => String(number).padStart(4, "0"));
  fc.assert(
    fc.property(fc.array(name, { minLength: 1, maxLength: 200 }), (changing) => {
      const list = new RegionList();
      const present = new Set<string>();
      const change = (name: string) => {
        if (present.delete(name)) return list.remove(name);
        present.add(name);
        list.add(region(name));
      };
      for (let number = 0; number < 2000; number++) change(String(number).padStart(4, "0"));
      for (const name of changing) {
        const before = list.blocks();
        const names = namesIn(before);
        expect(list.blocks()).toBe(before);
        change(name);
        const after = list.blocks();
        expect(namesIn(before)).toEqual(names);
        expect(namesIn(after)).toEqual([...present].sort());
        // One block changed, was split in two, or went.
        expect(after.filter((block) => !before.includes(block)).length).toBeLessThanOrEqual(2);
        expect(before.filter((block) => !after.includes(block))).toHaveLength(1);
      }
    }),
    { numRuns: 20 },
  );
});
