import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type CudaDriver, DriverError } from "../../src/core/driver.js";
import { IpcMemHandle } from "../../src/core/handle.js";
import { createCudaDriver } from "../../src/native/driver-selection.js";
import { emulatedCopy } from "../helpers/emulated-copy.js";
import {
  type Allocation,
  buildExporter,
  deviceVariables,
  ExporterHost,
  patternOf,
} from "../kill/exporter-host.js";
import { holds, timeout } from "./budget.js";
import { mutated } from "./mutations.js";

let folder: string;
let hosts: readonly ExporterHost[];
let allocations: Allocation[];
let copy: ReturnType<typeof emulatedCopy>;
let driver: CudaDriver;
let files: number;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "cudashm-fuzz-"));
  const program = await buildExporter(folder);
  hosts = [await ExporterHost.start(program), await ExporterHost.start(program)];
  allocations = [];
  for (const host of hosts) {
    for (const device of [0, 1])
      allocations.push(await host.allocate(device, 4096 + allocations.length, allocations.length));
  }
  copy = emulatedCopy(deviceVariables);
  driver = createCudaDriver({ preference: "emulated", libraryPath: copy.path, contextLingerMs: 0 });
  await copy.withVariables(() => driver.devices());
  for (const allocation of allocations) await expectOpens(allocation.handle, allocation);
  files = openFiles();
});
afterAll(async () => {
  for (const host of hosts) await host.kill();
  copy[Symbol.dispose]();
  rmSync(folder, { recursive: true });
});
afterEach(() => {
  expect(readFileSync("/proc/self/maps", "utf8").includes("/memfd:cudashm")).toBe(false);
  expect(openFiles()).toBeLessThanOrEqual(files);
  expect(copy.log.count("cuIpcCloseMemHandle")).toBe(copy.log.count("cuIpcOpenMemHandle_v2"));
});

function openFiles(): number {
  return readdirSync("/proc/self/fd").length;
}

/** Opens a handle and fails unless the memory is that of the allocation. */
async function expectOpens(handle: Buffer, allocation: Allocation): Promise<void> {
  await using mapping = await driver.open(allocation.deviceId, new IpcMemHandle(handle));
  expect(mapping.byteSize).toBe(BigInt(allocation.byteSize));
  const bytes = Buffer.alloc(allocation.byteSize);
  await mapping.read(0n, bytes);
  expect(bytes.equals(patternOf(allocation, 0, allocation.byteSize))).toBe(true);
}

async function expectRefused(handle: Buffer): Promise<void> {
  const error: unknown = await driver.open(0, new IpcMemHandle(handle)).then(
    (mapping) => mapping.close().then(() => "it was opened"),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(DriverError);
}

test(
  "a handle that was spoiled opens nothing",
  async () => {
    await holds(
      fc.asyncProperty(fc.nat(3), mutated, async (which, mutate) => {
        const { handle } = allocations[which] as Allocation;
        const spoiled = Buffer.concat([mutate(handle), Buffer.alloc(64)]).subarray(0, 64);
        if (!spoiled.equals(handle)) await expectRefused(spoiled);
      }),
      400,
    );
  },
  timeout,
);

/** What a handle says, and the checksum of whoever wrote it on purpose. */
interface Parts {
  readonly version: number;
  readonly device: number;
  readonly pid: number;
  readonly file: number;
  readonly unused: number;
  readonly startTime: bigint;
  readonly nonce: Buffer;
}

function partsOf(handle: Buffer): Parts {
  return {
    version: handle.readUInt16LE(16),
    device: handle.readUInt16LE(18),
    pid: handle.readInt32LE(20),
    file: handle.readInt32LE(24),
    unused: handle.readUInt32LE(28),
    startTime: handle.readBigUInt64LE(32),
    nonce: handle.subarray(40, 56),
  };
}

function forged({ version, device, pid, file, unused, startTime, nonce }: Parts): Buffer {
  const handle = Buffer.alloc(64);
  handle.write("CUDASHM-EMULATED");
  handle.writeUInt16LE(version, 16);
  handle.writeUInt16LE(device, 18);
  handle.writeInt32LE(pid, 20);
  handle.writeInt32LE(file, 24);
  handle.writeUInt32LE(unused, 28);
  handle.writeBigUInt64LE(startTime, 32);
  nonce.copy(handle, 40);
  handle.writeBigUInt64LE(checksumOf(handle.subarray(0, 56)), 56);
  return handle;
}

/** As native/emulated/hash.h has it. */
function checksumOf(bytes: Uint8Array): bigint {
  const wrap = (value: bigint) => BigInt.asUintN(64, value);
  let hash = 0xcbf29ce484222325n ^ 0x6375646173686d31n;
  for (const byte of bytes) hash = wrap((hash ^ BigInt(byte)) * 0x100000001b3n);
  hash ^= hash >> 32n;
  hash = wrap(hash * 0x9e3779b97f4a7c15n);
  return hash ^ (hash >> 29n);
}

test("a handle that is written as the driver writes it is the same", () => {
  for (const { handle } of allocations) expect(forged(partsOf(handle)).equals(handle)).toBe(true);
});

test(
  "a handle that was forged with a good checksum opens what it names in every part, or nothing",
  async () => {
    const which = fc.nat(3);
    const other = <Value>(values: readonly Value[]) => fc.option(fc.constantFrom(...values), { freq: 2 });
    const forgery = fc.record({
      of: fc.record({ device: which, pid: which, file: which, startTime: which, nonce: which }),
      device: other([0, 1, 2, 65_535]),
      pid: other([0, 1, -1, process.pid, process.ppid, 2 ** 31 - 1, -(2 ** 31)]),
      file: fc.option(fc.oneof(fc.integer({ min: -1, max: 40 }), fc.constantFrom(2 ** 31 - 1, -(2 ** 31))), {
        freq: 2,
      }),
      startTime: other([0n, 1n, 2n ** 64n - 1n]),
      nonce: fc.option(
        fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes)),
        { freq: 2 },
      ),
      version: fc.option(fc.constantFrom(0, 2, 65_535), { freq: 6 }),
      unused: fc.option(fc.constantFrom(1, 2 ** 32 - 1), { freq: 6 }),
    });
    // One part at a time comes near, all at once never.
    const near = fc.tuple(
      which,
      forgery,
      fc.constantFrom("device", "pid", "file", "startTime", "nonce", "version", "unused"),
    );
    await holds(
      fc.asyncProperty(near, fc.boolean(), async ([base, { of, ...given }, only], isNear) => {
        const real = allocations.map(({ handle }) => partsOf(handle)) as [Parts, Parts, Parts, Parts];
        const taken = { version: 1, unused: 0, ...real[base] } as Parts;
        const all: Parts = {
          version: given.version ?? 1,
          device: given.device ?? (real[of.device] as Parts).device,
          pid: given.pid ?? (real[of.pid] as Parts).pid,
          file: given.file ?? (real[of.file] as Parts).file,
          unused: given.unused ?? 0,
          startTime: given.startTime ?? (real[of.startTime] as Parts).startTime,
          nonce: given.nonce ?? (real[of.nonce] as Parts).nonce,
        };
        const handle = forged(isNear ? { ...taken, [only]: all[only as keyof Parts] } : all);
        const meant = allocations.find((allocation) => allocation.handle.equals(handle));
        if (meant === undefined) await expectRefused(handle);
        else await expectOpens(handle, meant);
      }),
      600,
    );
  },
  timeout,
);
