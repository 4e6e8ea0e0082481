import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseUint64 } from "../../src/http/uint64.js";

describe("parseUint64", () => {
  it("reads every unsigned 64-bit integer exactly", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (value) => {
        expect(parseUint64(String(value))).toBe(value);
      }),
    );
    expect(parseUint64("9007199254740993")).toBe(2n ** 53n + 1n);
    expect(parseUint64("18446744073709551615")).toBe(2n ** 64n - 1n);
  });

  it.each([
    "",
    "18446744073709551616",
    "99999999999999999999",
    "-1",
    "-0",
    "+1",
    "007",
    "1.0",
    "1e2",
    "0x10",
    " 1",
    "1\n",
  ])("refuses %j", (text) => {
    expect(parseUint64(text)).toBeNull();
  });
});
