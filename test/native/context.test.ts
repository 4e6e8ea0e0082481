import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { ExporterProcess } from "../../src/cli/exporter-process.js";
import { IpcMemHandle } from "../../src/core/handle.js";
import { createCudaDriver } from "../../src/native/driver-selection.js";
import { startExporter } from "../helpers/cudashm.js";
import { emulatedCopy } from "../helpers/emulated-copy.js";

let exporter: ExporterProcess;
let handle: IpcMemHandle;

beforeAll(async () => {
  exporter = await startExporter(["--driver=emulated", "--bytes=4096"]);
  handle = new IpcMemHandle(Buffer.from(exporter.body.raw_handle.b64, "base64"));
});
afterAll(() => exporter[Symbol.asyncDispose]());

async function load(contextLingerMs: number, variables: Record<string, string> = {}) {
  const copy = emulatedCopy({ CUDASHM_EMULATED_DEVICE_COUNT: "2", ...variables });
  const driver = createCudaDriver({ preference: "emulated", libraryPath: copy.path, contextLingerMs });
  await copy.withVariables(() => driver.devices());
  return {
    driver,
    retains: () => copy.log.count("cuDevicePrimaryCtxRetain"),
    releases: () => copy.log.count("cuDevicePrimaryCtxRelease_v2"),
    [Symbol.dispose]: () => copy[Symbol.dispose](),
  };
}

test("a context is made for the first mapping of a device and goes with its last", async () => {
  using loaded = await load(0);
  const first = await loaded.driver.open(0, handle);
  const second = await loaded.driver.open(0, handle);
  const other = await loaded.driver.allocate(1, 64n);
  expect(loaded.retains()).toBe(2);
  await first.close();
  expect(loaded.releases()).toBe(0);
  await second.close();
  expect(loaded.releases()).toBe(1);
  await other.free();
  expect(loaded.releases()).toBe(2);
});

test("a mapping opened while many others come and go never loses its context", async () => {
  using loaded = await load(0);
  await exporter.write(0, Buffer.from([7]));
  await Promise.all(
    Array.from({ length: 200 }, async () => {
      const mapping = await loaded.driver.open(0, handle);
      const into = new Uint8Array(1);
      await mapping.read(0n, into);
      expect(into[0]).toBe(7);
      await mapping.close();
    }),
  );
  expect(loaded.retains()).toBe(loaded.releases());
});

test("a context outlives its last mapping for the linger and is then released", async () => {
  using loaded = await load(80);
  await (await loaded.driver.open(0, handle)).close();
  expect(loaded.releases()).toBe(0);
  await vi.waitFor(() => expect(loaded.releases()).toBe(1), { interval: 5, timeout: 5000 });
  await (await loaded.driver.open(0, handle)).close();
  expect(loaded.retains()).toBe(2);
});

test("a mapping that comes within the linger finds the context still there", async () => {
  using loaded = await load(60_000);
  for (let i = 0; i < 5; i++) await (await loaded.driver.open(0, handle)).close();
  await loaded.driver.memoryInfo(0);
  expect([loaded.retains(), loaded.releases()]).toEqual([1, 0]);
});

test("free memory is told of a device that has a context, and asking makes none", async () => {
  using loaded = await load(0);
  const { driver } = loaded;
  expect(await driver.freeBytes(0)).toBeNull();
  const mapping = await driver.open(0, handle);
  expect(await driver.freeBytes(0)).toBe((await driver.memoryInfo(0)).freeBytes);
  expect(await driver.freeBytes(1)).toBeNull();
  await mapping.close();
  expect(await driver.freeBytes(0)).toBeNull();
  expect([loaded.retains(), loaded.releases()]).toEqual([1, 1]);
  await expect(driver.freeBytes(2)).rejects.toMatchObject({ cudaCode: 101 });
});

test("asking for free memory again and again keeps no context that is about to go", async () => {
  using loaded = await load(80);
  await (await loaded.driver.open(0, handle)).close();
  const asked = [];
  do asked.push(await loaded.driver.freeBytes(0));
  while (asked.at(-1) !== null && asked.length < 100_000);
  expect(asked.length).toBeGreaterThan(1);
  expect(asked.at(-1)).toBeNull();
  expect([loaded.retains(), loaded.releases()]).toEqual([1, 1]);
});

test("a context that cannot be made is told, and tried again by the next open", async () => {
  using loaded = await load(0, { CUDASHM_EMULATED_FAULTS: "cuDevicePrimaryCtxRetain@1=2" });
  await expect(loaded.driver.open(0, handle)).rejects.toMatchObject({
    call: "cuDevicePrimaryCtxRetain",
    cudaCode: 2,
  });
  await (await loaded.driver.open(0, handle)).close();
  expect([loaded.retains(), loaded.releases()]).toEqual([1, 1]);
});
