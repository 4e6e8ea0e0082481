import { randomBytes } from "node:crypto";
import { format, inspect } from "node:util";
import { expect, test } from "vitest";
import { RegistryError } from "../../src/core/errors.js";
import { IpcMemHandle } from "../../src/core/handle.js";

test.each([0, 1, 63, 65, 88, 128])("%d bytes are no handle", (length) => {
  const make = () => new IpcMemHandle(new Uint8Array(length));
  expect(make).toThrow(RegistryError);
  expect(make).toThrow(`a CUDA IPC memory handle has 64 bytes, got ${length}`);
});

test("a handle keeps its own copy of the bytes", () => {
  const bytes = randomBytes(64);
  const original = Buffer.from(bytes);
  const handle = new IpcMemHandle(bytes);
  bytes.fill(0);
  expect(handle.exposeBytes()).toEqual(original);
});

test("a handle made from the middle of a larger buffer has those bytes only", () => {
  const buffer = randomBytes(256);
  const handle = new IpcMemHandle(buffer.subarray(100, 164));
  expect(Buffer.from(handle.exposeBytes()).equals(buffer.subarray(100, 164))).toBe(true);
});

test("keys and fingerprints are equal exactly where the bytes are", () => {
  const bytes = randomBytes(64);
  const other = Uint8Array.from(bytes);
  other[63] = (other[63] as number) ^ 0x80;
  const [a, b, c] = [new IpcMemHandle(bytes), new IpcMemHandle(bytes), new IpcMemHandle(other)];
  expect([a.exposeKey(), a.fingerprint]).toEqual([b.exposeKey(), b.fingerprint]);
  expect(a.exposeKey()).not.toBe(c.exposeKey());
  expect(a.fingerprint).not.toBe(c.fingerprint);
  expect(a.fingerprint).toMatch(/^[0-9a-f]{16}$/);
});

const printers: Record<string, (handle: IpcMemHandle) => string> = {
  "a template": (handle) => `${handle}`,
  "Array.join": (handle) => [handle, handle].join(),
  "util.inspect": (handle) => inspect(handle),
  "util.inspect of what holds it": (handle) => inspect({ request: [{ handle }] }, { depth: 0 }),
  "util.inspect with everything shown": (handle) =>
    inspect({ handle }, { customInspect: false, showHidden: true, depth: 9, getters: false }),
  "util.inspect of a map key": (handle) => inspect(new Map([[handle, handle]])),
  "%s": (handle) => format("%s", handle),
  "%o": (handle) => format("%o", { handle }),
  "%O": (handle) => format("%O", handle),
  "%j": (handle) => format("%j", { handle }),
  "JSON.stringify": (handle) => JSON.stringify({ raw_handle: handle }),
  "a copy by spread": (handle) => JSON.stringify({ ...handle }) + inspect({ ...handle }),
  "a structured clone": (handle) => inspect(structuredClone(handle)),
  "an error's cause": (handle) => inspect(new Error("failed", { cause: { handle } })),
};

test.each(Object.keys(printers))("%s shows none of a handle's bytes", (how) => {
  const bytes = Buffer.from("0123456789abcdefSECRETsecret".padEnd(64, "~"));
  const shown = printers[how]?.(new IpcMemHandle(bytes)) ?? "";
  for (const part of [
    "SECRET",
    "0123",
    "~~",
    bytes.toString("hex").slice(0, 8),
    bytes.toString("base64").slice(0, 8),
  ]) {
    expect(shown).not.toContain(part);
  }
  // The numbers of the bytes, as a typed array prints.
  expect(shown).not.toMatch(/\b48,\s*49\b/);
});
