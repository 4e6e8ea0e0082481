/** The largest unsigned 64-bit integer. */
export const maxUint64 = 2n ** 64n - 1n;
const digits = /^(?:0|[1-9]\d{0,19})$/;

/** The unsigned 64-bit integer that `text` spells in plain decimal digits, or null if it spells none. */
export function parseUint64(text: string): bigint | null {
  if (!digits.test(text)) return null;
  const value = BigInt(text);
  return value <= maxUint64 ? value : null;
}
