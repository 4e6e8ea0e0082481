import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeHandleBase64 } from "../../src/http/base64.js";

const handle = fc.uint8Array({ minLength: 64, maxLength: 64 });
const inside = /[A-Za-z0-9+/]/;
const skipped = fc
  .string({
    unit: fc.oneof(fc.constantFrom("\n", "=", "-", "_", " ", "\0", "\r"), fc.string({ unit: "binary" })),
  })
  .map((text) =>
    Array.from(text)
      .filter((character) => !inside.test(character))
      .join(""),
  );

describe("decodeHandleBase64", () => {
  it("gives back the bytes that any standard encoder encoded", () => {
    fc.assert(
      fc.property(handle, (bytes) => {
        expect(decodeHandleBase64(Buffer.from(bytes).toString("base64"))).toEqual(Buffer.from(bytes));
      }),
    );
  });

  it("skips every character outside the alphabet, wherever it stands", () => {
    fc.assert(
      fc.property(handle, fc.array(fc.tuple(fc.nat(86), skipped), { maxLength: 5 }), (bytes, insertions) => {
        let text = Buffer.from(bytes).toString("base64").slice(0, 86);
        for (const [at, junk] of insertions) text = text.slice(0, at) + junk + text.slice(at);
        expect(decodeHandleBase64(text)).toEqual(Buffer.from(bytes));
      }),
    );
  });

  it("reads what the C++ client sends: a line feed after 72 characters and one at the end", () => {
    const bytes = Uint8Array.from({ length: 64 }, (_, i) => i * 3);
    const text = Buffer.from(bytes).toString("base64");
    expect(decodeHandleBase64(`${text.slice(0, 72)}\n${text.slice(72)}\n`)).toEqual(Buffer.from(bytes));
  });

  it("refuses every other number of characters of the alphabet", () => {
    for (const characters of [0, 1, 84, 85, 87, 88, 172]) {
      expect(decodeHandleBase64("A".repeat(characters))).toBeNull();
    }
    expect(decodeHandleBase64("A".repeat(86))).toEqual(Buffer.alloc(64));
  });

  it("ignores the four bits that 86 characters have over", () => {
    expect(decodeHandleBase64(`${"A".repeat(85)}P`)).toEqual(Buffer.alloc(64));
  });

  it("takes no character for another that ends in the same byte", () => {
    expect(decodeHandleBase64("\u0141".repeat(86))).toBeNull();
  });
});
