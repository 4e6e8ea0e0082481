import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ExporterProcess } from "../../src/cli/exporter-process.js";
import type { ServiceProcess } from "../../src/cli/service-process.js";
import {
  type CudaSharedMemoryClient,
  createCudaSharedMemoryClient,
  type RegionRegistration,
} from "../../src/client/index.js";
import { quoteRegionName, regionNameProblem } from "../../src/core/region-name.js";
import { startExporter, startService, testDriver } from "../helpers/cudashm.js";
import { inferenceClient } from "../helpers/inference-client.js";

let service: ServiceProcess;
let exporter: ExporterProcess;
let client: CudaSharedMemoryClient;
let region: RegionRegistration;
beforeAll(async () => {
  service = await startService();
  exporter = await startExporter(["--bytes=5000"]);
  client = createCudaSharedMemoryClient({ baseUrl: service.httpUrl });
  region = { rawHandle: exporter.body.raw_handle.b64, deviceId: 0, byteSize: 5000 };
});
afterAll(async () => {
  expect(await exporter.end()).toBe(0);
  expect(await service.stop()).toEqual({ code: 0, signal: null });
});

describe("what the service refuses keeps its text, its code and the request's id", () => {
  const largest = 2n ** 64n - 1n;
  const b64Text = /^'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t/;
  test.each<[string, Partial<RegionRegistration>, RegExp]>([
    [
      "one byte more than the allocation",
      { byteSize: 5001 },
      /^failed to .* 'r': invalid args: .*5001.*5000/,
    ],
    ["the largest size", { byteSize: largest }, /invalid args: .*18446744073709551615/],
    ["2^53 + 1 bytes, to the digit", { byteSize: 2n ** 53n + 1n }, /invalid args: .*9007199254740993/],
    ["a size that no uint64 holds", { byteSize: largest + 1n }, /non-unsigned-integer.*'byte_size'/],
    ["a negative size", { byteSize: -1 }, /non-unsigned-integer.*'byte_size'/],
    ["no bytes", { byteSize: 0 }, /byte_size must be at least 1/],
    ["a device that is not there", { deviceId: 99 }, /device_id 99 is no device/],
    ["device 2^32, which is not device 0", { deviceId: 2n ** 32n }, /device_id 4294967296 is no device/],
    ["a handle of 63 bytes", { rawHandle: new Uint8Array(63) }, b64Text],
    [
      "a handle of a million bytes in a limit of one MiB",
      { rawHandle: new Uint8Array(10 ** 6) },
      /exceeds the maximum/,
    ],
    ["base64 that is none", { rawHandle: '"\\\n' }, b64Text],
    ["64 bytes that are no handle", { rawHandle: new Uint8Array(64) }, /CUDA_ERROR_INVALID_VALUE \(1\)/],
  ])("%s", async (_what, part, text) => {
    await expect(client.register("r", { ...region, ...part })).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      httpStatus: 400,
      message: expect.stringMatching(text),
      requestId: expect.stringMatching(/./),
    });
    expect(await client.statuses()).toEqual([]);
  });

  test("a name that is taken is ALREADY_EXISTS, and the first region stays", async () => {
    await client.register("taken", { ...region, byteSize: 64 });
    await expect(client.register("taken", region)).rejects.toMatchObject({
      code: "ALREADY_EXISTS",
      httpStatus: 400,
      message: "shared memory region 'taken' already in manager",
    });
    expect((await client.status("taken")).byteSize).toBe(64n);
    await client.unregister("taken");
  });

  test.skipIf(testDriver !== "emulated")(
    "a fault of the service is INTERNAL, and its request's id finds the cause in the log",
    async () => {
      await using faulty = await startService([], { CUDASHM_EMULATED_FAULTS: "cuIpcCloseMemHandle@1=1" });
      const { register, unregister } = createCudaSharedMemoryClient({ baseUrl: faulty.httpUrl });
      await register("r", region);
      const refusal: unknown = await unregister("r").catch((error) => error);
      expect(refusal).toMatchObject({
        code: "INTERNAL",
        httpStatus: 500,
        message: expect.stringMatching(/^failed to close CUDA IPC handle: CUDA_ERROR_INVALID_VALUE/),
      });
      await unregister("r");
      expect(await faulty.stop()).toEqual({ code: 0, signal: null });
      const fault = faulty.log.find((line) => line.msg === "request failed by a fault of the service");
      expect(refusal).toMatchObject({ requestId: fault?.requestId });
    },
  );

  test("a service that serves no contents says how it would", async () => {
    await client.register("r", region);
    await expect(client.readContents("r")).rejects.toMatchObject({
      code: "PERMISSION_DENIED",
      httpStatus: 403,
      message: expect.stringContaining("--allow-contents"),
    });
    await client.unregister("r");
  });

  test("a service that registers nothing is UNIMPLEMENTED", async () => {
    await using closed = await startService(["--allow-client-shm=false"]);
    const refused = createCudaSharedMemoryClient({ baseUrl: closed.httpUrl });
    await expect(refused.register("r", region)).rejects.toMatchObject({
      code: "UNIMPLEMENTED",
      httpStatus: 501,
      message: "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.",
    });
  });
});

describe("names that no URL carries are refused before anything is sent", () => {
  const sent = () => expect.unreachable("a request was sent");
  const offline = createCudaSharedMemoryClient({ baseUrl: "http://localhost", fetch: sent });

  test.each(["", ".", "..", "a\ud800"])("%j, in the service's words", async (name) => {
    const refusal = { code: "INVALID_ARGUMENT", httpStatus: null, message: regionNameProblem(name) };
    await expect(offline.register(name, region)).rejects.toMatchObject({
      ...refusal,
      message: `failed to register shared memory region ${quoteRegionName(name)}: invalid args: ${refusal.message}`,
    });
    await expect(offline.status(name)).rejects.toMatchObject(refusal);
    await expect(offline.unregister(name)).rejects.toMatchObject(refusal);
    await expect(offline.readContents(name)).rejects.toMatchObject(refusal);
    await expect(offline.writeContents(name, new Uint8Array(1))).rejects.toMatchObject(refusal);
  });

  test.each(["", ".", ".."])("a register of %j is refused over gRPC with the same text", async (name) => {
    using grpc = inferenceClient(service.grpcAddress);
    const register = { name, raw_handle: Buffer.alloc(64), device_id: 0, byte_size: 64 };
    const { message }: { message: string } = await offline.register(name, region).catch((error) => error);
    await expect(grpc.call("CudaSharedMemoryRegister", register)).rejects.toMatchObject({ details: message });
  });

  test.each([
    ["a\0b", /control character/],
    ["x".repeat(1025), /1025 bytes/],
  ])("others are the service's to refuse: %j", async (name, text) => {
    await expect(client.unregister(name)).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      httpStatus: 400,
      message: expect.stringMatching(text),
    });
  });
});

describe("numbers that JavaScript does not hold exactly are refused before anything is sent", () => {
  test.each([0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])("%d", async (byteSize) => {
    await expect(client.register("r", { ...region, byteSize })).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      httpStatus: null,
      message: `byteSize is ${byteSize}, which is no exact whole number: give a bigint above 2^53 - 1`,
    });
  });
});
