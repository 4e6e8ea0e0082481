import { expect, test } from "vitest";
import { parseRequestJson } from "../../src/http/request-json.js";

const parse = (text: string) => parseRequestJson(Buffer.from(text));

test.each([
  ['{"a":1,"a":2}', 8],
  ['{"a":"x","a":"y"}', 10],
  ['{"a":{"b":1,"b":2}}', 13],
  ['{"a":1,"a":"1"}', 8],
])("%s gives a key two values, and is refused with the place and without the key", (text, position) => {
  expect(() => parse(text)).toThrow(
    expect.objectContaining({
      code: "INVALID_ARGUMENT",
      message: `failed to parse the request JSON buffer: Duplicate key at ${position}`,
    }),
  );
});

test("a key given twice with one value says one thing only", () => {
  expect(parse('{"a":"x","a":"x"}')).toEqual({ a: "x" });
});

test("a key named __proto__ is a member like any other", () => {
  const parsed = parse('{"__proto__":{"polluted":1}}') as object;
  expect(Object.hasOwn(Object.prototype, "polluted")).toBe(false);
  expect("polluted" in {}).toBe(false);
  expect(parsed).toBeTypeOf("object");
});
