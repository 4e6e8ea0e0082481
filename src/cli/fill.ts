import type { OptionKind } from "../config/option.js";

/** The bytes that fill an allocation, repeated: one byte, or a text. */
export const fillPattern: OptionKind<Uint8Array> = {
  placeholder: "BYTE|TEXT",
  expected: "a byte (0 to 255, or 0x00 to 0xff) or a text to repeat",
  isSwitch: false,
  parse(text) {
    if (text === "") return null;
    if (/^(\d+|0x[0-9a-f]+)$/i.test(text)) {
      const byte = Number(text);
      return byte <= 255 ? Uint8Array.of(byte) : null;
    }
    return Buffer.from(text, "utf8");
  },
};

const chunkBytes = 1 << 20;

/** Writes `pattern` over and over until `byteSize` bytes are written, in chunks of about 1 MiB. */
export async function fill(
  target: { write(offset: bigint, from: Uint8Array): Promise<void> },
  byteSize: bigint,
  pattern: Uint8Array,
): Promise<void> {
  const repeats = Math.max(1, Math.floor(chunkBytes / pattern.byteLength));
  const chunk = Buffer.alloc(Math.min(Number(byteSize), repeats * pattern.byteLength), pattern);
  for (let offset = 0n; offset < byteSize; offset += BigInt(chunk.byteLength)) {
    const left = byteSize - offset;
    await target.write(offset, left < chunk.byteLength ? chunk.subarray(0, Number(left)) : chunk);
  }
}
