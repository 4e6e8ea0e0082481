import { setImmediate as nextTurn } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ExporterProcess } from "../../src/cli/exporter-process.js";
import { IpcMemHandle } from "../../src/core/handle.js";
import { createCudaDriver } from "../../src/native/driver-selection.js";
import { startExporter } from "../helpers/cudashm.js";
import { emulatedCopy } from "../helpers/emulated-copy.js";

const lanes = 8;
const room = 1024;
let exporter: ExporterProcess;
let handle: IpcMemHandle;

beforeAll(async () => {
  exporter = await startExporter(["--driver=emulated", "--bytes=4096"]);
  handle = new IpcMemHandle(Buffer.from(exporter.body.raw_handle.b64, "base64"));
});
afterAll(() => exporter[Symbol.asyncDispose]());

/** A driver of two devices whose opens number `from` to `to` take `ms`. */
async function load(from: number, to: number, ms: number) {
  const delays = [];
  for (let call = from; call <= to; call++) delays.push(`cuIpcOpenMemHandle_v2@${call}=${ms}`);
  const copy = emulatedCopy({
    CUDASHM_EMULATED_DELAYS: delays.join(","),
    CUDASHM_EMULATED_DEVICE_COUNT: "2",
  });
  const driver = createCudaDriver({
    preference: "emulated",
    libraryPath: copy.path,
    contextLingerMs: 60_000,
  });
  await copy.withVariables(() => driver.devices());
  return { driver, log: copy.log, [Symbol.dispose]: () => copy[Symbol.dispose]() };
}

async function took(call: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await call();
  return performance.now() - started;
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] as number;
}

test("seven slow opens on a device delay no other call on it", async () => {
  using loaded = await load(2, 8, 2500);
  const { driver } = loaded;
  const mapping = await driver.open(0, handle);
  let opened = 0;
  const slow = Array.from({ length: 7 }, async () => {
    const opening = await driver.open(0, handle);
    opened++;
    return opening;
  });
  // Well inside the driver, all seven, or a quick open would be one of those that the driver delays.
  const inside = () =>
    driver.runningCalls().filter(({ what, runningMs }) => what === "open" && runningMs > 50);
  while (inside().length < 7) await nextTurn();
  const times = [];
  for (let i = 0; i < 5; i++) {
    times.push(await took(() => mapping.read(0n, new Uint8Array(16))));
    times.push(await took(async () => (await driver.open(0, handle)).close()));
    times.push(await took(() => driver.memoryInfo(0)));
  }
  times.push(await took(() => mapping.close()));
  expect(opened).toBe(0);
  expect(median(times)).toBeLessThan(50);
  // A call is answered before its lane is through with it.
  while (driver.runningCalls().length > 7) await nextTurn();
  const running = driver.runningCalls();
  expect(running.map(({ deviceId, what }) => `${what} on ${deviceId}`)).toEqual(Array(7).fill("open on 0"));
  for (const { runningMs } of running) expect(runningMs).toBeGreaterThan(0);
  for (const opening of await Promise.all(slow)) await opening.close();
  expect(loaded.log.count("cuIpcOpenMemHandle_v2")).toBe(loaded.log.count("cuIpcCloseMemHandle"));
});

test("a device whose lanes are all taken delays neither another device nor the list of devices", async () => {
  using loaded = await load(1, lanes, 1000);
  const { driver } = loaded;
  let opened = 0;
  const slow = Array.from({ length: lanes }, async () => {
    const opening = await driver.open(0, handle);
    opened++;
    return opening;
  });
  const fresh = createCudaDriver({
    preference: "emulated",
    libraryPath: driver.description?.libraryPath as string,
    contextLingerMs: 0,
  });
  const times = [await took(() => driver.devices()), await took(() => fresh.devices())];
  times.push(await took(async () => (await driver.allocate(1, 64n)).free()));
  expect(opened).toBe(0);
  expect(median(times)).toBeLessThan(50);
  for (const opening of await Promise.all(slow)) await opening.close();
});

test("a device takes eight calls and 1,024 that wait, refuses the next and never a close", async () => {
  using loaded = await load(2, lanes + 1, 700);
  const { driver } = loaded;
  const mapping = await driver.open(0, handle);
  const opening = Array.from({ length: lanes + room }, () => driver.open(0, handle));
  await expect(driver.open(0, handle)).rejects.toMatchObject({
    code: "RESOURCE_EXHAUSTED",
    message: expect.stringMatching(/try again/),
  });
  await expect(driver.allocate(0, 1n)).rejects.toMatchObject({ code: "RESOURCE_EXHAUSTED" });
  await expect(mapping.read(0n, new Uint8Array(1))).rejects.toMatchObject({ code: "RESOURCE_EXHAUSTED" });
  await mapping.close();
  const mappings = await Promise.all(opening);
  await Promise.all(mappings.map((one) => one.close()));
  expect(loaded.log.count("cuIpcOpenMemHandle_v2")).toBe(1 + lanes + room);
  expect(loaded.log.count("cuIpcCloseMemHandle")).toBe(1 + lanes + room);
});

test("file system calls do not wait for driver calls", async () => {
  using loaded = await load(1, lanes, 800);
  const { readFile } = await import("node:fs/promises");
  const slow = Array.from({ length: lanes }, () => loaded.driver.open(0, handle));
  expect(await took(() => readFile(import.meta.filename))).toBeLessThan(400);
  for (const opening of await Promise.all(slow)) await opening.close();
});
