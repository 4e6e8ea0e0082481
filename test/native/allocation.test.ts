import { afterAll, beforeAll, expect, test } from "vitest";
import { createCudaDriver, type SelectedDriver } from "../../src/native/driver-selection.js";
import { emulatedCopy } from "../helpers/emulated-copy.js";

// Node 20 has these; the library that TypeScript is told of does not yet.
const ResizableArrayBuffer = ArrayBuffer as unknown as new (
  size: number,
  options: { maxByteLength: number },
) => ArrayBuffer & { resize(size: number): void };

const mebibyte = 1n << 20n;
const copy = emulatedCopy({ CUDASHM_EMULATED_MEMORY_BYTES: String(16n * mebibyte) });
let driver: SelectedDriver;

beforeAll(async () => {
  driver = createCudaDriver({ preference: "emulated", libraryPath: copy.path, contextLingerMs: 0 });
  await copy.withVariables(() => driver.devices());
});
afterAll(() => copy[Symbol.dispose]());

test("memory taken by an allocation comes back when it is freed", async () => {
  const before = await driver.memoryInfo(0);
  expect(before.totalBytes).toBe(16n * mebibyte);
  const allocation = await driver.allocate(0, 4n * mebibyte);
  expect((await driver.memoryInfo(0)).freeBytes).toBe(before.freeBytes - 4n * mebibyte);
  await allocation.free();
  await allocation.free();
  expect(await driver.memoryInfo(0)).toEqual(before);
});

test("one handle stands for an allocation, another for the next", async () => {
  await using first = await driver.allocate(0, 100n);
  await using second = await driver.allocate(0, 100n);
  const [a, b, c] = [await first.exportHandle(), await first.exportHandle(), await second.exportHandle()];
  expect(a.exposeKey()).toBe(b.exposeKey());
  expect(a.exposeKey()).not.toBe(c.exposeKey());
});

test("more memory than there is, and none at all, are refused by the driver", async () => {
  await expect(driver.allocate(0, 17n * mebibyte)).rejects.toMatchObject({
    call: "cuMemAlloc",
    cudaCode: 2,
    hint: expect.stringContaining("CUDASHM_EMULATED_MEMORY_BYTES"),
  });
  await expect(driver.allocate(0, 0n)).rejects.toMatchObject({ call: "cuMemAlloc", cudaCode: 1 });
  await expect(driver.allocate(0, 2n ** 64n - 1n)).rejects.toMatchObject({ cudaCode: 2 });
});

test("copies reach plain, shared, offset and large buffers", async () => {
  await using allocation = await driver.allocate(0, 2n * mebibyte);
  const large = Buffer.alloc(Number(2n * mebibyte));
  for (let i = 0; i < large.length; i++) large[i] = i % 251;
  await allocation.write(0n, large);
  const back = Buffer.alloc(large.length);
  await allocation.read(0n, back);
  expect(back.equals(large)).toBe(true);
  const shared = new Uint8Array(new SharedArrayBuffer(300_000), 7, 290_000);
  await allocation.read(1n, shared);
  expect(Buffer.compare(Buffer.from(shared), large.subarray(1, 290_001))).toBe(0);
  await allocation.write(5n, new Uint8Array(new SharedArrayBuffer(3)).fill(9));
  const few = Buffer.alloc(5);
  await allocation.read(4n, few);
  expect([...few]).toEqual([4, 9, 9, 9, 8]);
});

test("a buffer taken away while a copy runs is refused, never written to", async () => {
  await using allocation = await driver.allocate(0, 1000n);
  const into = new Uint8Array(1000);
  const reading = allocation.read(0n, into);
  structuredClone(into, { transfer: [into.buffer] });
  await expect(reading).rejects.toThrow(/detached or shrunk/);

  const resizable = new ResizableArrayBuffer(1000, { maxByteLength: 2000 });
  const shrinking = allocation.read(0n, new Uint8Array(resizable));
  resizable.resize(10);
  await expect(shrinking).rejects.toThrow(/detached or shrunk/);
});

test("what is written is taken at the call, even if the buffer goes away", async () => {
  await using allocation = await driver.allocate(0, 4n);
  const from = Uint8Array.of(1, 2, 3, 4);
  const writing = allocation.write(0n, from);
  structuredClone(from, { transfer: [from.buffer] });
  await writing;
  const into = new Uint8Array(4);
  await allocation.read(0n, into);
  expect([...into]).toEqual([1, 2, 3, 4]);
});

test("a free waits for the copies that were asked for before, and refuses those after", async () => {
  const allocation = await driver.allocate(0, 8n * mebibyte);
  await allocation.write(0n, Uint8Array.of(42));
  const reads = Array.from({ length: 50 }, () => new Uint8Array(200_000));
  const reading = reads.map((into) => allocation.read(0n, into));
  const freeing = allocation.free();
  await expect(allocation.read(0n, new Uint8Array(1))).rejects.toMatchObject({
    code: "FAILED_PRECONDITION",
  });
  await Promise.all(reading);
  await freeing;
  expect(reads.map(([first]) => first)).toEqual(reads.map(() => 42));
  await expect(allocation.exportHandle()).rejects.toMatchObject({ code: "FAILED_PRECONDITION" });
});
