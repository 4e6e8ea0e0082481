import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeHandleBase64 } from "../../src/http/base64.js";
import { holds, timeout } from "./budget.js";

const alphabet = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"];

/** Triton's rule in other words: what is outside the alphabet is not there, and 86 characters have to be left. */
function byTheRule(text: string): Buffer | null {
  const sextets = Array.from(text, (character) => alphabet.indexOf(character)).filter((value) => value >= 0);
  if (sextets.length !== 86) return null;
  const bits = sextets.map((value) => value.toString(2).padStart(6, "0")).join("");
  return Buffer.from(
    Array.from({ length: 64 }, (_, byte) => Number.parseInt(bits.slice(byte * 8, byte * 8 + 8), 2)),
  );
}

const inside = fc.constantFrom(...alphabet);
const outside = fc.oneof(
  fc.constantFrom(..."\n\r\t =-_.\0\u00e9\u0141\u{1f600}\ud800"),
  fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
);

/** Mostly as many characters of the alphabet as there have to be, or nearly so. */
const text = fc.oneof(
  { weight: 3, arbitrary: fc.array(fc.array(inside, { minLength: 85, maxLength: 87 }), { maxLength: 1 }) },
  { weight: 1, arbitrary: fc.array(fc.array(inside, { maxLength: 200 }), { maxLength: 3 }) },
);
const withOthers = fc
  .tuple(text, fc.array(fc.tuple(fc.nat(200), outside), { maxLength: 40 }))
  .map(([parts, others]) => {
    const characters = parts.flat();
    for (const [at, other] of others) characters.splice(at % (characters.length + 1), 0, other);
    return characters.join("");
  });

test(
  "a text is the handle that Triton's rule makes of it, or none where it makes none",
  async () => {
    await holds(
      fc.property(withOthers, (given) => {
        expect(decodeHandleBase64(given)).toEqual(byTheRule(given));
      }),
      1500,
    );
  },
  timeout,
);
