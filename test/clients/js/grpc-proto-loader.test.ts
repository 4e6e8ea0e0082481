import { fileURLToPath } from "node:url";
import {
  type CallOptions,
  type Client,
  credentials,
  loadPackageDefinition,
  Metadata,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { ExporterProcess } from "../../../src/cli/exporter-process.js";
import type { ServiceProcess } from "../../../src/cli/service-process.js";
import { startExporter, startService } from "../../helpers/cudashm.js";

// Triton's own JavaScript sample loads its .proto with these options.
const sampleOptions = { keepCase: true, longs: String, enums: String, defaults: true, oneofs: true };
const proto = fileURLToPath(new URL("../../../proto/inference/grpc_service.proto", import.meta.url));

type Answer = Record<string, unknown>;
type Call = (
  request: object,
  metadata: Metadata,
  options: CallOptions,
  done: (error: ServiceError | null, answer: Answer) => void,
) => { cancel(): void };
type InferenceClient = Client & Record<string, Call>;

let service: ServiceProcess;
let exporter: ExporterProcess;
let handle: Buffer;
let client: InferenceClient;
beforeAll(async () => {
  service = await startService(["--allow-contents"]);
  exporter = await startExporter(["--bytes=5000", "--fill=grpc-js"]);
  handle = Buffer.from(exporter.body.raw_handle.b64, "base64");
  const { inference } = loadPackageDefinition(loadSync(proto, sampleOptions)) as unknown as {
    inference: { GRPCInferenceService: new (address: string, credentials: object) => InferenceClient };
  };
  client = new inference.GRPCInferenceService(service.grpcAddress, credentials.createInsecure());
});
afterEach(() => call("CudaSharedMemoryUnregister"));
afterAll(async () => {
  client.close();
  expect(await exporter.end()).toBe(0);
  expect(await service.stop()).toEqual({ code: 0, signal: null });
});

function call(method: string, request: object = {}, options: CallOptions = {}): Promise<Answer> {
  const metadata = new Metadata();
  metadata.set("authorization", "Basic dXNlcjpwYXNz");
  return new Promise((resolve, reject) => {
    const send = client[method];
    if (send === undefined) throw new Error(`no call ${method}`);
    send.call(client, request, metadata, options, (error, answer) =>
      error === null ? resolve(answer) : reject(error),
    );
  });
}

const region = (name: string, part: object = {}) => ({
  name,
  raw_handle: handle,
  device_id: 0,
  byte_size: 64,
  ...part,
});

test("asks for liveness, readiness and metadata as the sample does, in camel case", async () => {
  expect(await call("serverLive")).toEqual({ live: true });
  expect(await call("serverReady")).toEqual({ ready: true });
  expect(await call("serverMetadata")).toMatchObject({
    name: "cudashm",
    version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    extensions: expect.arrayContaining(["cuda_shared_memory"]),
  });
});

test("registers raw bytes, lists 64-bit numbers as strings, unregisters one and all", async () => {
  expect(await call("SystemSharedMemoryUnregister")).toEqual({});
  expect(await call("CudaSharedMemoryUnregister")).toEqual({});
  expect(await call("CudaSharedMemoryRegister", region("one"))).toEqual({});
  expect(await call("CudaSharedMemoryRegister", region("a b/c", { byte_size: "5000" }))).toEqual({});
  const one = { name: "one", device_id: "0", byte_size: "64" };
  const other = { name: "a b/c", device_id: "0", byte_size: "5000" };
  expect(await call("CudaSharedMemoryStatus")).toEqual({ regions: { one, "a b/c": other } });
  expect(await call("CudaSharedMemoryStatus", { name: "one" })).toEqual({ regions: { one } });
  const contents = await fetch(`${service.httpUrl}/v1/regions/a%20b%2Fc/contents?byte_size=14`);
  expect(await contents.text()).toBe("grpc-jsgrpc-js");
  expect(await call("CudaSharedMemoryUnregister", { name: "one" })).toEqual({});
  expect(await call("CudaSharedMemoryStatus")).toEqual({ regions: { "a b/c": other } });
  expect(await call("CudaSharedMemoryUnregister", { name: "" })).toEqual({});
  expect(await call("CudaSharedMemoryStatus")).toEqual({ regions: {} });
});

test("has the same regions as HTTP", async () => {
  await call("CudaSharedMemoryRegister", region("shared"));
  const cuda = `${service.httpUrl}/v2/cudasharedmemory`;
  const listed = [{ name: "shared", device_id: 0, byte_size: 64 }];
  expect(await (await fetch(`${cuda}/status`)).json()).toEqual(listed);
  await fetch(`${cuda}/region/shared/unregister`, { method: "POST" });
  expect(await call("CudaSharedMemoryStatus")).toEqual({ regions: {} });
});

describe("refusals", () => {
  const prefix = "failed to register shared memory region 'r': invalid args: ";
  test.each<[string, object, string]>([
    ["one byte too many", { byte_size: "5001" }, "5001"],
    ["the largest uint64, to the digit", { byte_size: "18446744073709551615" }, "18446744073709551615"],
    ["no bytes", { byte_size: "0" }, "byte_size must be at least 1"],
    ["device -1", { device_id: "-1" }, "-1"],
    ["device 2^32", { device_id: "4294967296" }, "4294967296"],
    ["a short handle", { raw_handle: Buffer.alloc(63) }, "63"],
    [
      "a handle as base64 text",
      { raw_handle: Buffer.from(Buffer.alloc(64, 7).toString("base64")) },
      "base64",
    ],
    ["64 bytes that are no handle", { raw_handle: Buffer.alloc(64) }, "CUDA_ERROR_INVALID_VALUE (1)"],
  ])("%s is INVALID_ARGUMENT", async (_what, part, text) => {
    await expect(call("CudaSharedMemoryRegister", region("r", part))).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: expect.stringContaining(text),
    });
    await expect(call("CudaSharedMemoryRegister", region("r", part))).rejects.toMatchObject({
      details: expect.stringMatching(`^${prefix}`),
    });
    expect(await call("CudaSharedMemoryStatus")).toEqual({ regions: {} });
  });

  test("a name that is taken is ALREADY_EXISTS", async () => {
    await call("CudaSharedMemoryRegister", region("r"));
    await expect(call("CudaSharedMemoryRegister", region("r"))).rejects.toMatchObject({
      code: status.ALREADY_EXISTS,
      details: "shared memory region 'r' already in manager",
    });
  });

  test("an unknown name is NOT_FOUND, its text intact with percent signs and other scripts", async () => {
    for (const name of ["nobody", "100% 入力\u{1f600}"]) {
      await expect(call("CudaSharedMemoryStatus", { name })).rejects.toMatchObject({
        code: status.NOT_FOUND,
        details: `Unable to find cuda shared memory region: '${name}'`,
      });
    }
  });

  test("calls of Triton's that this service does not have are UNIMPLEMENTED", async () => {
    const register = { name: "s", key: "/s", offset: 0, byte_size: 64 };
    await expect(call("SystemSharedMemoryRegister", register)).rejects.toMatchObject({
      code: status.UNIMPLEMENTED,
      details: expect.stringContaining("CUDA shared memory only"),
    });
  });
});

test("a deadline in the past is DEADLINE_EXCEEDED, a cancelled call CANCELLED, and neither registers", async () => {
  const late = call("CudaSharedMemoryRegister", region("late"), { deadline: Date.now() - 1 });
  await expect(late).rejects.toMatchObject({ code: status.DEADLINE_EXCEEDED });
  const cancelled = new Promise((resolve) => {
    client
      .CudaSharedMemoryRegister?.(region("cancelled"), new Metadata(), {}, (error) => resolve(error?.code))
      .cancel();
  });
  expect(await cancelled).toBe(status.CANCELLED);
  expect(await call("CudaSharedMemoryStatus")).toEqual({ regions: {} });
});

test("fifty calls at a time over one channel all succeed", async () => {
  const names = Array.from({ length: 50 }, (_, i) => `region-${i}`);
  await Promise.all(names.map((name) => call("CudaSharedMemoryRegister", region(name))));
  const { regions } = (await call("CudaSharedMemoryStatus")) as { regions: object };
  expect(Object.keys(regions).sort()).toEqual([...names].sort());
  await Promise.all(names.map((name) => call("CudaSharedMemoryUnregister", { name })));
  expect(await call("CudaSharedMemoryStatus")).toEqual({ regions: {} });
});
