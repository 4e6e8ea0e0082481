import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GrowingBuffer } from "../../src/http/growing-buffer.js";

describe("GrowingBuffer", () => {
  it("holds what was appended, in order, and leaves the pieces as they were", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 50 })), (pieces) => {
        const before = pieces.map((piece) => Uint8Array.from(piece));
        const buffer = new GrowingBuffer();
        for (const piece of pieces) buffer.append(piece);
        expect(Buffer.compare(buffer.bytes, Buffer.concat(before))).toBe(0);
        expect(buffer.length).toBe(buffer.bytes.byteLength);
        expect(pieces).toEqual(before);
      }),
    );
  });

  it("takes memory for the bytes, not for the pieces", () => {
    const buffer = new GrowingBuffer();
    const piece = Uint8Array.of(1);
    for (let i = 0; i < 100_000; i++) buffer.append(piece);
    expect(buffer.bytes.buffer.byteLength).toBeLessThanOrEqual(200_000);
  });

  it("does not copy a body that comes in one piece", () => {
    const buffer = new GrowingBuffer();
    const piece = Uint8Array.of(1, 2, 3);
    buffer.append(piece);
    expect(buffer.bytes.buffer).toBe(piece.buffer);
  });
});
