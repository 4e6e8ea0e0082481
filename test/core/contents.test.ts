import { expect, test } from "vitest";
import { checksumOf, pinRange, readPieces, writePieces } from "../../src/core/contents.js";
import { RegistryError } from "../../src/core/errors.js";
import { crc32c } from "../helpers/crc32c.js";
import { context, createHarness, expectRejection, request, untilIdle } from "../helpers/registry-harness.js";

const mebibyte = 1024 * 1024;

async function registered(byteSize: number) {
  const harness = createHarness();
  const { handle, bytes } = harness.driver.allocate(byteSize);
  await harness.registry.register(request("r", handle, { byteSize: BigInt(byteSize) }), context);
  return { ...harness, bytes };
}

async function* each(...pieces: number[]): AsyncGenerator<Uint8Array, void> {
  for (const byteSize of pieces) yield new Uint8Array(byteSize).fill(1);
}

test("a checksum made in parts is that of the whole", async () => {
  const { registry, bytes } = await registered(65 * mebibyte + 3);
  for (let at = 0; at < bytes.length; at += 4096) bytes[at] = at >> 12;
  using pin = pinRange(registry, "r", { offset: 0n }, context);
  expect(await checksumOf(pin, undefined)).toBe(crc32c(bytes));
});

test("a checksum that nobody waits for any more is not finished", async () => {
  const { registry, driver } = await registered(65 * mebibyte);
  using pin = pinRange(registry, "r", { offset: 0n }, context);
  const left = new AbortController();
  let parts = 0;
  driver.beforeCopy = () => {
    parts++;
    left.abort(new RegistryError("CANCELLED", "the client cancelled the call"));
  };
  await expectRejection(checksumOf(pin, left.signal), "CANCELLED", "the client cancelled the call");
  expect(parts).toBe(1);
});

test("no bytes are read, written and summed as well as many", async () => {
  const { registry } = await registered(64);
  using pin = pinRange(registry, "r", { offset: 64n }, context);
  expect(pin.byteSize).toBe(0n);
  for await (const piece of readPieces(pin, new Uint8Array(16)))
    expect.fail(`read ${piece.byteLength} bytes`);
  expect(await writePieces(pin, each(0, 0), { what: "the data" })).toBe(0n);
  expect(await checksumOf(pin, undefined)).toBe(0);
  await expectRejection(
    writePieces(pin, each(1), { what: "the data" }),
    "OUT_OF_RANGE",
    "the data is longer than the 0 bytes to write; nothing was written",
  );
});

test("a write that is aborted, or whose data break off, tells how far it came", async () => {
  const { registry, driver } = await registered(4 * mebibyte);
  using pin = pinRange(registry, "r", { offset: 0n }, context);
  const left = new AbortController();
  driver.beforeCopy = () => left.abort(new RegistryError("UNAVAILABLE", "Server exiting"));
  const { signal } = left;
  await expectRejection(
    writePieces(pin, each(mebibyte, mebibyte), { what: "the data", signal }),
    "UNAVAILABLE",
    "Server exiting; the first 1048576 bytes were written",
  );
  driver.beforeCopy = undefined;
  async function* broken() {
    yield* each(mebibyte + 1);
    throw new Error("at 0xdeadbeef");
  }
  await expectRejection(
    writePieces(pin, broken(), { what: "the data" }),
    "INTERNAL",
    "internal error; the cause is in the service's log; the first 1048576 bytes were written",
  );
});

test("a write whose data do not come ends when the region is taken by force", async () => {
  const { driver, registry } = createHarness();
  await registry.register(request("r", driver.allocate(64).handle), context);
  const pin = registry.pin("r", null, context);
  async function* stalled() {
    yield new Uint8Array(8);
    await new Promise(() => {});
  }
  const written = writePieces(pin, stalled(), { what: "the body" });
  await untilIdle();
  expect(await registry.release("r", { isForced: true }, context)).toEqual({ isClosed: true, pins: 0 });
  await expectRejection(
    written,
    "FAILED_PRECONDITION",
    "shared memory region 'r' was unregistered by force; nothing was written",
  );
});
