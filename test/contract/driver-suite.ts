import { randomBytes } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type CudaDriver, type DeviceMapping, DriverError } from "../../src/core/driver.js";
import type { RegistryError } from "../../src/core/errors.js";
import { IpcMemHandle } from "../../src/core/handle.js";
import { RegionRegistry } from "../../src/core/registry.js";
import { crc32c } from "../helpers/crc32c.js";
import { context, expectRejection, request } from "../helpers/registry-harness.js";

/** A process that holds one allocation and made a handle of it. */
export interface DriverExporter extends AsyncDisposable {
  readonly deviceId: number;
  readonly handle: IpcMemHandle;
  read(offset: number, byteSize: number): Promise<Uint8Array>;
  write(offset: number, bytes: Uint8Array): Promise<void>;
  /** Frees the memory; the process lives on. */
  free(): Promise<void>;
  /** Ends without freeing anything, as a killed process does. Resolves when it is gone. */
  die(): Promise<void>;
}

/** Imports that the driver carried out in this process. */
interface DriverCounts {
  readonly opens: number;
  readonly closes: number;
}

/** One driver and the means to give it something to open. */
export interface DriverHarness extends AsyncDisposable {
  readonly driver: CudaDriver;
  /** Whether the size reported is the allocation's to the byte; NVIDIA's driver may report a larger block. */
  readonly exactSizes: boolean;
  /** null where the driver does not count. */
  counts(): DriverCounts | null;
  startExporter(byteSize: number, deviceId: number): Promise<DriverExporter>;
}

/** What the core relies on in a driver, as tests for any implementation of the port. */
export function describeDriverContract(name: string, createHarness: () => Promise<DriverHarness>): void {
  describe(`driver contract: ${name}`, () => {
    let harness: DriverHarness;
    let driver: CudaDriver;
    beforeAll(async () => {
      harness = await createHarness();
      driver = harness.driver;
    });
    afterAll(() => harness[Symbol.asyncDispose]());

    afterEach(() => {
      const counts = harness.counts();
      if (counts !== null) expect(counts.closes).toBe(counts.opens);
    });

    test("lists its devices in order, each with its own identity", async () => {
      const devices = await driver.devices();
      expect(devices.length).toBeGreaterThan(0);
      expect(devices.map(({ ordinal }) => ordinal)).toEqual([...devices.keys()]);
      expect(new Set(devices.map(({ uuid }) => uuid)).size).toBe(devices.length);
      for (const { uuid, pciBusId, name, totalBytes } of devices) {
        expect(uuid).toMatch(/^(GPU|MIG)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
        expect(pciBusId).toMatch(/^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]$/i);
        expect(name).not.toBe("");
        expect(totalBytes).toBeGreaterThan(0n);
      }
      expect(await driver.devices()).toEqual(devices);
      expect(driver.health).toEqual({ state: "usable" });
      expect(["cuda", "emulated"]).toContain(driver.kind);
    });

    test("opens on each device, reports the allocation's size and shows the exporter's bytes", async () => {
      for (const { ordinal } of await driver.devices()) {
        await using exporter = await harness.startExporter(10_007, ordinal);
        const secret = randomBytes(10_007);
        await exporter.write(0, secret);
        await using mapping = await driver.open(ordinal, exporter.handle);
        expect(mapping.deviceId).toBe(ordinal);
        expect(mapping.devicePointer).not.toBe(0n);
        if (harness.exactSizes) expect(mapping.byteSize).toBe(10_007n);
        else expect(mapping.byteSize).toBeGreaterThanOrEqual(10_007n);
        expect(await read(mapping, 0n, 10_007)).toEqual(Buffer.from(secret));
      }
    });

    test("copies windows both ways, to the first and the last byte", async () => {
      await using exporter = await harness.startExporter(4096, 0);
      await exporter.write(0, new Uint8Array(4096));
      await using mapping = await driver.open(0, exporter.handle);
      await mapping.write(0n, Uint8Array.of(1));
      await mapping.write(4094n, Uint8Array.of(2, 3));
      await mapping.write(100n, Buffer.from("from the importer"));
      expect([...(await exporter.read(0, 2)), ...(await exporter.read(4093, 3))]).toEqual([1, 0, 0, 2, 3]);
      expect(Buffer.from(await exporter.read(100, 17)).toString()).toBe("from the importer");
      await exporter.write(4095, Uint8Array.of(9));
      expect([...(await read(mapping, 4095n, 1))]).toEqual([9]);
      expect([...(await read(mapping, 4096n, 0))]).toEqual([]);
    });

    test("copies of several pieces at once keep to their places", async () => {
      const size = 3 << 20;
      await using exporter = await harness.startExporter(size, 0);
      await using mapping = await driver.open(0, exporter.handle);
      const parts = Array.from({ length: 6 }, () => randomBytes(size / 6));
      await Promise.all(parts.map((part, i) => mapping.write(BigInt((i * size) / 6), part)));
      const seen = await Promise.all(parts.map((_, i) => read(mapping, BigInt((i * size) / 6), size / 6)));
      for (const [i, part] of parts.entries()) expect(part.equals(seen[i] as Buffer)).toBe(true);
    });

    test("refuses copies beyond the allocation and copies nothing of them", async () => {
      await using exporter = await harness.startExporter(4096, 0);
      await exporter.write(4090, Uint8Array.of(1, 2, 3, 4, 5, 6));
      await using mapping = await driver.open(0, exporter.handle);
      const end = mapping.byteSize;
      for (const offset of [end - 1n, end, -1n, 2n ** 63n, 2n ** 64n - 1n]) {
        await expectRejection(mapping.write(offset, Uint8Array.of(7, 7)), "OUT_OF_RANGE", /./);
        const into = Uint8Array.of(8, 8);
        await expectRejection(mapping.read(offset, into), "OUT_OF_RANGE", /./);
        expect([...into]).toEqual([8, 8]);
      }
      expect([...(await exporter.read(4090, 6))]).toEqual([1, 2, 3, 4, 5, 6]);
    });

    test("makes the checksum of any window, at once or in parts, and sees what the exporter wrote since", async () => {
      const size = 9 << 20;
      await using exporter = await harness.startExporter(size, 0);
      await using mapping = await driver.open(0, exporter.handle);
      const bytes = randomBytes(size);
      await mapping.write(0n, bytes);
      expect(await mapping.checksum(0n, BigInt(size))).toBe(crc32c(bytes));
      expect(await mapping.checksum(7n, 4_200_001n)).toBe(crc32c(bytes.subarray(7, 7 + 4_200_001)));
      const first = await mapping.checksum(0n, 5_000_001n);
      expect(await mapping.checksum(5_000_001n, BigInt(size) - 5_000_001n, first)).toBe(crc32c(bytes));
      await exporter.write(0, Buffer.from("123456789"));
      expect(await mapping.checksum(0n, 9n)).toBe(0xe3069283);
      await mapping.write(64n, new Uint8Array(32));
      expect(await mapping.checksum(64n, 32n)).toBe(0x8a9136aa);
      await mapping.write(64n, new Uint8Array(32).fill(0xff));
      expect(await mapping.checksum(64n, 32n)).toBe(0x62a8ab43);
    });

    test("the checksum of no bytes is 0, or that of the bytes before them", async () => {
      await using exporter = await harness.startExporter(4096, 0);
      await using mapping = await driver.open(0, exporter.handle);
      expect(await mapping.checksum(0n, 0n)).toBe(0);
      expect(await mapping.checksum(mapping.byteSize, 0n, 0xffff_ffff)).toBe(0xffff_ffff);
    });

    test("refuses a checksum beyond the allocation, and one after the close", async () => {
      await using exporter = await harness.startExporter(4096, 0);
      const mapping = await driver.open(0, exporter.handle);
      const end = mapping.byteSize;
      const windows = [
        [0n, end + 1n],
        [end, 1n],
        [end + 1n, 0n],
        [-1n, 1n],
        [2n, -1n],
        [2n ** 64n - 1n, 2n],
        [0n, 2n ** 64n],
      ] as const;
      for (const [offset, byteSize] of windows) {
        await expectRejection(mapping.checksum(offset, byteSize), "OUT_OF_RANGE", /./);
      }
      await mapping.close();
      await expectRejection(mapping.checksum(0n, 1n), "FAILED_PRECONDITION", /closed/);
      await expectRejection(mapping.checksum(0n, 0n), "FAILED_PRECONDITION", /closed/);
    });

    test.each([
      ["zero", new Uint8Array(64)],
      ["random", randomBytes(64)],
    ])("refuses a handle of %s bytes in the driver's words", async (_, bytes) => {
      const error = await refusal(driver.open(0, new IpcMemHandle(bytes)));
      expect(error.cudaError).toMatch(/^CUDA_ERROR_/);
      expect(error.cudaCode).toBeGreaterThan(0);
      expect(error.hint).not.toBe("");
      expect(error.message).toContain(`${error.cudaError} (${error.cudaCode}): ${error.hint}`);
      expect(driver.health).toEqual({ state: "usable" });
    });

    test("refuses the handle of memory that was freed", async () => {
      await using exporter = await harness.startExporter(4096, 0);
      await exporter.free();
      await refusal(driver.open(0, exporter.handle));
    });

    test("refuses the handle of an exporter that died", async () => {
      await using exporter = await harness.startExporter(4096, 0);
      await exporter.die();
      await refusal(driver.open(0, exporter.handle));
    });

    test("keeps a mapping's memory though the exporter frees it, or dies", async () => {
      for (const leave of ["free", "die"] as const) {
        await using exporter = await harness.startExporter(4096, 0);
        await exporter.write(0, Buffer.from("left behind!"));
        await using mapping = await driver.open(0, exporter.handle);
        await exporter[leave]();
        expect((await read(mapping, 0n, 12)).toString()).toBe("left behind!");
        await mapping.write(0n, Uint8Array.of(1));
        expect([...(await read(mapping, 0n, 1))]).toEqual([1]);
      }
    });

    test("closes once: later closes do nothing, later copies are refused", async () => {
      await using exporter = await harness.startExporter(4096, 0);
      const before = harness.counts();
      const mapping = await driver.open(0, exporter.handle);
      await mapping.close();
      await mapping.close();
      await mapping[Symbol.asyncDispose]();
      if (before !== null) {
        expect(harness.counts()).toEqual({ opens: before.opens + 1, closes: before.closes + 1 });
      }
      await expectRejection(mapping.read(0n, new Uint8Array(1)), "FAILED_PRECONDITION", /closed/);
      await expectRejection(mapping.write(0n, new Uint8Array(1)), "FAILED_PRECONDITION", /closed/);
    });

    test("opens a handle again and again, with the same memory behind it", async () => {
      await using exporter = await harness.startExporter(4096, 0);
      for (let i = 0; i < 50; i++) {
        await using mapping = await driver.open(0, exporter.handle);
        if (i > 0) expect([...(await read(mapping, 7n, 1))]).toEqual([i - 1]);
        await mapping.write(7n, Uint8Array.of(i));
      }
      expect([...(await exporter.read(7, 1))]).toEqual([49]);
    });

    test("keeps several handles open at once, each with its own memory", async () => {
      const exporters = await Promise.all([1, 2, 3].map(() => harness.startExporter(4096, 0)));
      const mappings = await Promise.all(exporters.map(({ handle }) => driver.open(0, handle)));
      await Promise.all(mappings.map((mapping, i) => mapping.write(0n, Uint8Array.of(i))));
      const seen = await Promise.all(exporters.map((exporter) => exporter.read(0, 1)));
      expect(seen.map(([byte]) => byte)).toEqual([0, 1, 2]);
      await Promise.all(mappings.map((mapping) => mapping.close()));
      await Promise.all(exporters.map((exporter) => exporter[Symbol.asyncDispose]()));
    });

    test("serves a registry: shared by two names, size checked, pinned across an unregister", async () => {
      await using exporter = await harness.startExporter(4096, 0);
      await using registry = new RegionRegistry({ driver });
      const { handle } = exporter;
      await registry.register(request("a", handle), context);
      await registry.register(request("b", handle, { byteSize: 4096n }), context);
      expect(registry.mappings).toBe(1);
      const tooLarge = registry.status("a").allocationByteSize + 1n;
      await expectRejection(
        registry.register(request("c", handle, { byteSize: tooLarge }), context),
        "INVALID_ARGUMENT",
        new RegExp(
          `invalid args: byte_size ${tooLarge} exceeds the ${tooLarge - 1n} bytes of the allocation`,
        ),
      );
      await registry.unregister("a", context);
      const pin = registry.pin("b", { offset: 16n, byteSize: 8n }, context);
      await registry.unregister("b", context);
      await pin.write(0n, Buffer.from("through!"));
      expect(Buffer.from(await exporter.read(16, 8)).toString()).toBe("through!");
      pin.release();
      await registry.close();
      expect(registry.mappings).toBe(0);
    });
  });
}

async function read(mapping: DeviceMapping, offset: bigint, byteSize: number): Promise<Buffer> {
  const into = Buffer.alloc(byteSize);
  await mapping.read(offset, into);
  return into;
}

async function refusal(open: Promise<DeviceMapping>): Promise<DriverError> {
  const error = await open.then(
    () => expect.fail("the driver opened it"),
    (reason: unknown) => reason as DriverError | RegistryError,
  );
  expect(error).toBeInstanceOf(DriverError);
  return error as DriverError;
}
