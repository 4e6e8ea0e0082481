import { expect, test } from "vitest";
import type { RawMemory } from "../../src/native/addon.js";
import { NativeMapping } from "../../src/native/device-memory.js";

test("a checksum goes to the device in pieces of 4 MiB, each carried on from the one before", async () => {
  const mebibyte = 1n << 20n;
  const pieces: unknown[] = [];
  const raw = {
    byteSize: 1n << 40n,
    checksum: async (...piece: unknown[]) => pieces.push(piece),
  } as unknown as RawMemory;
  const mapping = new NativeMapping(raw, (result) => result as never);
  expect(await mapping.checksum(5n, 9n * mebibyte, 77)).toBe(3);
  expect(pieces).toEqual([
    [5n, 4n * mebibyte, 77],
    [5n + 4n * mebibyte, 4n * mebibyte, 1],
    [5n + 8n * mebibyte, mebibyte, 2],
  ]);
});
