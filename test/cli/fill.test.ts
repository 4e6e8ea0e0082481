import fc from "fast-check";
import { expect, test } from "vitest";
import { fill, fillPattern } from "../../src/cli/fill.js";

function memory(byteSize: number) {
  const bytes = Buffer.alloc(byteSize, 0xee);
  return {
    bytes,
    async write(offset: bigint, from: Uint8Array) {
      if (Number(offset) + from.byteLength > byteSize) throw new Error("beyond the end");
      bytes.set(from, Number(offset));
    },
  };
}

test.each([
  ["0", [0]],
  ["255", [255]],
  ["0xff", [255]],
  ["0x0", [0]],
  ["a", [97]],
  ["é", [0xc3, 0xa9]],
  ["12 34", [...Buffer.from("12 34")]],
  ["-1", [...Buffer.from("-1")]],
])("%j is the pattern %j", (text, expected) => {
  expect([...(fillPattern.parse(text) ?? [])]).toEqual(expected);
});

test.each(["", "256", "0x100"])("%j is no pattern", (text) => {
  expect(fillPattern.parse(text)).toBeNull();
});

test("the pattern runs on without a seam, whatever the sizes", async () => {
  const pattern = fc.uint8Array({ minLength: 1, maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(pattern, fc.integer({ min: 1, max: 300 }), async (bytes, byteSize) => {
      const target = memory(byteSize);
      await fill(target, BigInt(byteSize), bytes);
      for (let i = 0; i < byteSize; i++) expect(target.bytes[i]).toBe(bytes[i % bytes.length]);
    }),
  );
});

test("the pattern runs on across the chunks of a large allocation", async () => {
  const byteSize = 3 * 2 ** 20 + 5;
  const target = memory(byteSize);
  await fill(target, BigInt(byteSize), Buffer.from("seven b"));
  expect(target.bytes.equals(Buffer.alloc(byteSize, "seven b"))).toBe(true);
});
