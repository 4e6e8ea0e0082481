import fc from "fast-check";
import { stringify } from "lossless-json";
import { expect, test } from "vitest";
import { exactJson } from "../../src/http/exact-json.js";

test("is what JSON.stringify makes of the same with numbers, and no digit is lost", () => {
  expect(exactJson({ a: 1n, b: [2n ** 53n - 1n, null], c: undefined, d: { e: "\u2028\ud800" } })).toBe(
    '{"a":1,"b":[9007199254740991,null],"d":{"e":"\u2028\\ud800"}}',
  );
  expect(exactJson([2n ** 53n, 2n ** 64n - 1n, -(2n ** 53n)])).toBe(
    "[9007199254740992,18446744073709551615,-9007199254740992]",
  );
});

test("is what is written digit by digit, whatever the numbers", () => {
  const member = fc.oneof(
    fc.bigInt(),
    fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
    fc.string(),
    fc.integer(),
  );
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.oneof(member, fc.array(member))), (value) => {
      expect(exactJson(value)).toBe(stringify(value));
    }),
  );
});
