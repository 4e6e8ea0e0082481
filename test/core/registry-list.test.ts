import fc from "fast-check";
import { expect, test } from "vitest";
import { regionNameProblem } from "../../src/core/region-name.js";
import { context, createHarness, request } from "../helpers/registry-harness.js";

const regionName = fc
  .string({ unit: "binary", minLength: 1, maxLength: 4 })
  .filter((name) => regionNameProblem(name) === null);

test("regions are listed by the bytes of their names, whenever they came and went and were asked for", async () => {
  const act = fc.record({ name: regionName, list: fc.boolean(), remove: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(act, { maxLength: 40 }), async (acts) => {
      const { driver, registry } = createHarness();
      const { handle } = driver.allocate(64);
      const held = new Set<string>();
      for (const { name, list, remove } of acts) {
        if (!held.has(name)) {
          held.add(name);
          await registry.register(request(name, handle), context);
        } else if (remove) {
          held.delete(name);
          await registry.unregister(name, context);
        }
        if (!list) continue;
        const expected = [...held].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
        expect(registry.statuses().map((region) => region.name)).toEqual(expected);
      }
    }),
    { numRuns: 200 },
  );
});
