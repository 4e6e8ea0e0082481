import fc from "fast-check";
import { expect, test } from "vitest";
import { parsePlainJson } from "../../src/http/plain-json.js";

const spaced = (text: string, space: string) => text.replace(/[{}[\]:,]/g, (mark) => `${mark}${space}`);

test("numbers become bigints, wherever they stand", () => {
  const text = '{"a":0,"b":[1,{"c":9007199254740991}],"d":"2","e":null,"f":true}';
  expect(parsePlainJson(text)).toEqual({
    a: 0n,
    b: [1n, { c: 9007199254740991n }],
    d: "2",
    e: null,
    f: true,
  });
});

test.each([" ", "\n", "\t\r\n "])("space between the parts changes nothing: %j", (space) => {
  const text = '{"raw_handle":{"b64":"AAAA"},"device_id":0,"byte_size":64}';
  expect(parsePlainJson(spaced(text, space))).toEqual(parsePlainJson(text));
  expect(parsePlainJson(text)).toEqual({ raw_handle: { b64: "AAAA" }, device_id: 0n, byte_size: 64n });
});

test.each([
  ['{"a":1,"a":2}', "a key twice"],
  ['{"a":1,"a":1}', "a key twice with one value"],
  ['{"a":9007199254740992}', "a number that doubles do not hold apart from the next"],
  ['{"a":9223372036854776000}', "a larger one that is printed as it is written"],
  ['{"a":18446744073709551615}', "the largest unsigned number"],
  ['{"a":1.5}', "a fraction"],
  ['{"a":-1}', "a negative number"],
  ['{"a":-0}', "minus zero"],
  ['{"a":1e3}', "an exponent"],
  ['{"a":1e+21}', "an exponent as it is printed"],
  ['{"a": "a b"}', "a space within a string and one outside"],
  ['{"a":"\\u0061"}', "an escape that need not be"],
  ['{"b":1,"1":2}', "keys that JavaScript sorts"],
  ["{", "no JSON"],
  ["", "nothing"],
  [JSON.stringify("a".repeat(4096)), "a long text"],
])("what could be read wrongly is left alone: %s, %s", (text) => {
  expect(parsePlainJson(text)).toBeUndefined();
});

test("a key named __proto__ is a member like any other", () => {
  const parsed = parsePlainJson('{"__proto__":{"a":1}}') as object;
  expect(Object.getOwnPropertyNames(parsed)).toEqual(["__proto__"]);
  expect(Object.getPrototypeOf(parsed)).toBe(Object.prototype);
});

test("whatever is read says what was written", () => {
  const members = fc.array(fc.tuple(fc.string(), fc.oneof(fc.nat().map(String), fc.json())), {
    maxLength: 4,
  });
  fc.assert(
    fc.property(members, (pairs) => {
      const text = `{${pairs.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(",")}}`;
      const parsed = parsePlainJson(text);
      if (parsed === undefined) return;
      const written = JSON.stringify(parsed, (_, value) =>
        typeof value === "bigint" ? Number(value) : value,
      );
      expect(written).toBe(text);
    }),
  );
});
