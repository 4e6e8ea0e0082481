/** Bytes of a text that is worth a second look; longer ones are rare, and could be nested deeper than a stack. */
const maxLength = 4096;
const space = /[ \t\n\r]+/g;

/**
 * What `text` is in JSON, each number a bigint, or undefined if JSON.parse may have lost something of it: what comes
 * out of JSON.stringify as it went in, but for space, has no key twice and no number that was rounded. Several times
 * as fast as a parser that keeps all of it, and enough for what almost every client sends.
 */
export function parsePlainJson(text: string): unknown {
  if (text.length > maxLength) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    const again = JSON.stringify(value);
    return again === text || again === text.replace(space, "") ? withBigInts(value) : undefined;
  } catch {
    return undefined;
  }
}

/** The value itself, its numbers changed in place. Throws at the first that is no unsigned integer, or might be none. */
function withBigInts(value: unknown): unknown {
  if (typeof value === "number") {
    if (value < 0 || !Number.isSafeInteger(value)) throw new RangeError("no plain unsigned integer");
    return BigInt(value);
  }
  if (typeof value === "object" && value !== null) {
    const members = value as Record<string, unknown>;
    for (const key in members) {
      const member = members[key];
      if (typeof member !== "string") members[key] = withBigInts(member);
    }
  }
  return value;
}
