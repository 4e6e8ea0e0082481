import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isFailure, loadAddon, type RawDriver, type RawMemory } from "../../src/native/addon.js";
import { emulatedCopy } from "../helpers/emulated-copy.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const copy = emulatedCopy();
let driver: RawDriver;
let memory: RawMemory;

beforeAll(async () => {
  const loaded = await loadAddon().loadDriver(copy.path, 0);
  if (isFailure(loaded)) throw new Error(loaded.text);
  driver = loaded;
  expect(await copy.withVariables(() => driver.initialise())).toBe(1);
  const allocated = await driver.allocate(0, 64n);
  if (isFailure(allocated)) throw new Error(allocated.name);
  memory = allocated;
});
afterAll(async () => {
  await memory.close();
  copy[Symbol.dispose]();
});

const wrong = (call: () => unknown) => expect(call);

test("wrong arguments are thrown at once, whatever they are", () => {
  const addon = loadAddon();
  wrong(() => addon.loadDriver(1 as never, 0)).toThrow(TypeError);
  for (const linger of [-1, 0.5, Number.NaN, 2 ** 31, "1", undefined]) {
    wrong(() => addon.loadDriver(copy.path, linger as never)).toThrow("argument 2 must be an integer");
  }
  for (const deviceId of [-1, 0.5, "0", 0n, null, undefined]) {
    wrong(() => driver.allocate(deviceId as never, 1n)).toThrow("argument 1 must be an integer");
  }
  for (const byteSize of [-1n, 2n ** 64n, 1, "1", undefined]) {
    wrong(() => driver.allocate(0, byteSize as never)).toThrow("argument 2 must be a bigint");
  }
  for (const attribute of [-1, 0.5, "1", undefined]) {
    wrong(() => driver.attribute(0, attribute as never)).toThrow("argument 2 must be an integer");
  }
  for (const seed of [-1, 0.5, 2 ** 32, 1n, undefined]) {
    wrong(() => memory.checksum(0n, 1n, seed as never)).toThrow("argument 3 must be an integer");
  }
  wrong(() => memory.checksum(0n, 1 as never, 0)).toThrow("argument 2 must be a bigint");
  for (const fd of [-1, 0.5, "0", undefined]) {
    wrong(() => addon.lockFile(fd as never)).toThrow("argument 1 must be an integer");
  }
  for (const pid of [-1, 0.5, 2 ** 31, undefined]) {
    wrong(() => addon.watchProcess(pid as never, 0n, true)).toThrow("argument 1 must be an integer");
  }
  wrong(() => addon.watchProcess(1, -1n, true)).toThrow("argument 2 must be a bigint");
  wrong(() => addon.watchProcess(1, 0n, undefined as never)).toThrow("argument 3 must be a boolean");
  wrong(() => addon.unwatchProcess(1 as never)).toThrow("argument 1 must be a bigint");
  expect(addon.unwatchProcess(1n)).toBeUndefined();
  wrong(() => driver.attribute(1, 1)).toThrow(RangeError);
  wrong(() => driver.freeBytes(1)).toThrow(RangeError);
  wrong(() => driver.open(1, new Uint8Array(64))).toThrow(RangeError);
  for (const handle of [new Uint8Array(63), new Uint8Array(65), new Uint8Array(0)]) {
    wrong(() => driver.open(0, handle)).toThrow("argument 2 must have 64 bytes");
  }
  for (const bytes of [new Uint16Array(32), new ArrayBuffer(64), [], "x", null, undefined]) {
    wrong(() => driver.open(0, bytes as never)).toThrow("argument 2 must be a Uint8Array");
    wrong(() => memory.read(0n, bytes as never)).toThrow("argument 2 must be a Uint8Array");
  }
});

test("a copy beyond the end is thrown, and keeps no promise waiting", async () => {
  wrong(() => memory.read(64n, new Uint8Array(1))).toThrow(RangeError);
  wrong(() => memory.write(2n ** 64n - 1n, new Uint8Array(2))).toThrow(RangeError);
  wrong(() => memory.checksum(64n, 1n, 0)).toThrow(RangeError);
  wrong(() => memory.checksum(1n, 2n ** 64n - 1n, 0)).toThrow(RangeError);
  expect(await memory.read(64n, new Uint8Array(0))).toBeNull();
});

test("nobody makes a driver or memory by hand, or lends their methods to something else", () => {
  const Driver = driver.constructor as new (...args: unknown[]) => RawDriver;
  const Memory = memory.constructor as new (...args: unknown[]) => RawMemory;
  wrong(() => new Driver()).toThrow("a driver comes from loadDriver only");
  wrong(() => new Memory(memory)).toThrow("device memory comes from a driver only");
  wrong(() => memory.close.call({} as never)).toThrow(TypeError);
  wrong(() => memory.close.call(driver as never)).toThrow(TypeError);
  wrong(() => Object.create(memory).close()).toThrow(TypeError);
});

test("nothing is loaded before it is needed, and a missing build is told in a sentence that says what to run", () => {
  const folder = mkdtempSync(join(tmpdir(), "cudashm-unbuilt-"));
  try {
    cpSync(join(root, "dist"), join(folder, "dist"), { recursive: true });
    cpSync(join(root, "package.json"), join(folder, "package.json"));
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
    mkdirSync(join(folder, "native"));
    const script = `
      const { createCudaDriver } = await import("${folder}/dist/native/driver-selection.js");
      const driver = createCudaDriver({ preference: "emulated", libraryPath: "/nowhere", contextLingerMs: 0 });
      console.log(driver.health.state);
      await driver.devices().catch((error) => console.log(error.code, error.message));
      console.log(driver.health.state);`;
    const said = execFileSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
    expect(said.split("\n")).toEqual([
      "starting",
      "UNAVAILABLE the native addon is not built: run `npm run build:native` in the package's folder",
      "unusable",
      "",
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
