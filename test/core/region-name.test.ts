import fc from "fast-check";
import { expect, test } from "vitest";
import { compareRegionNames, quoteRegionName, regionNameProblem } from "../../src/core/region-name.js";

const ordinaryNames = [
  "r1",
  "my region",
  "a/b",
  "100%",
  "%41",
  "a%2541",
  "共有メモリ",
  "caf\u00e9",
  "cafe\u0301",
  "__proto__",
  "constructor",
  "toString",
  "InceptionV3/Predictions/Softmax",
  "...",
  "🧠",
  " ",
  "\ufeff",
  "x".repeat(1024),
  "é".repeat(512),
];

test.each(ordinaryNames)("%j is a region's name", (name) => {
  expect(regionNameProblem(name)).toBeNull();
});

test.each([
  ["", "the region name is empty"],
  [".", "'.' is not allowed as a region name: URL parsers fold it away"],
  ["..", "'..' is not allowed as a region name: URL parsers fold it away"],
  ["a\u0000b", "the region name has a control character"],
  ["a\nb", "the region name has a control character"],
  ["\u007f", "the region name has a control character"],
  ["\u0085", "the region name has a control character"],
  ["\ud800", "the region name has an unpaired surrogate"],
  ["a\udc00b", "the region name has an unpaired surrogate"],
  ["x".repeat(1025), "the region name has 1025 bytes of UTF-8, at most 1024 are allowed"],
  ["é".repeat(513), "the region name has 1026 bytes of UTF-8, at most 1024 are allowed"],
])("%j is refused with the reason", (name, problem) => {
  expect(regionNameProblem(name)).toBe(problem);
});

test("names sort as their UTF-8 bytes do", () => {
  // Half of the characters come from where UTF-16 units and UTF-8 bytes disagree.
  const character = fc.oneof(
    fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
    fc.constantFrom("\ud7ff", "\ue000", "\uffff", "\u{10000}", "\u{10ffff}", "a"),
  );
  const name = fc.array(character, { maxLength: 6 }).map((parts) => parts.join(""));
  fc.assert(
    fc.property(name, name, (a, b) => {
      const expected = Buffer.compare(Buffer.from(a), Buffer.from(b));
      expect(Math.sign(compareRegionNames(a, b))).toBe(expected);
    }),
    { numRuns: 2000 },
  );
});

test("a name is quoted as it is, so long as a region can have it", () => {
  for (const name of ordinaryNames) expect(quoteRegionName(name)).toBe(`'${name}'`);
});

test("a quoted name breaks no line, is well-formed and short whatever it was", () => {
  expect(quoteRegionName("a\r\nb\u0000")).toBe("'a\\u000d\\u000ab\\u0000'");
  expect(quoteRegionName("a\ud800")).toBe("'a\ufffd'");
  expect(quoteRegionName("x".repeat(5000))).toBe(`'${"x".repeat(64)}...'`);
  fc.assert(
    fc.property(fc.string({ unit: fc.nat(0xffff).map((unit) => String.fromCharCode(unit)) }), (name) => {
      const quoted = quoteRegionName(name);
      expect(quoted.isWellFormed()).toBe(true);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: none of them may be left.
      expect(quoted).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
    }),
  );
});
