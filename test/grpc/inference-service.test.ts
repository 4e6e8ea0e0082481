import { expect, test } from "vitest";
import { clientShmDisabledText } from "../../src/core/face-context.js";
import type { ListedRegion, RegionStatus } from "../../src/core/region.js";
import { addressOf, createCaller, createTestFace, startServer } from "./harness.js";

async function start(options?: Parameters<typeof createTestFace>[0]) {
  const face = createTestFace(options);
  const server = await startServer(face);
  return { face, call: createCaller(addressOf(server)) };
}

test("a region is registered, listed with exact numbers, and unregistered", async () => {
  const { face, call } = await start();
  expect(await call("CudaSharedMemoryRegister", { ...face.goodRegister, device_id: "1" })).toMatchObject({
    code: "OK",
    response: {},
  });
  const listed = { regions: { r: { name: "r", device_id: "1", byte_size: "64" } } };
  expect((await call("CudaSharedMemoryStatus")).response).toEqual(listed);
  expect((await call("CudaSharedMemoryStatus", { name: "r" })).response).toEqual(listed);
  expect(face.registry.status("r")).toMatchObject({ owner: "anonymous", protocol: "grpc" });

  expect(await call("CudaSharedMemoryUnregister", { name: "r" })).toMatchObject({ code: "OK" });
  expect((await call("CudaSharedMemoryStatus")).response).toEqual({ regions: {} });
  expect(face.driver).toMatchObject({ opens: 1, closes: 1 });
});

test("the status of all follows every change", async () => {
  const { face, call } = await start();
  const names = async () => Object.keys((await call("CudaSharedMemoryStatus")).response.regions);
  expect(await names()).toEqual([]);
  await call("CudaSharedMemoryRegister", { ...face.goodRegister, name: "b" });
  expect(await names()).toEqual(["b"]);
  await call("CudaSharedMemoryRegister", { ...face.goodRegister, name: "a" });
  expect(await names()).toEqual(["a", "b"]);
  await call("CudaSharedMemoryUnregister", { name: "b" });
  expect(await names()).toEqual(["a"]);
});

test("an unregister without a name is for all", async () => {
  const { face, call } = await start();
  for (const name of ["a", "b", "c"]) await call("CudaSharedMemoryRegister", { ...face.goodRegister, name });
  expect(await call("CudaSharedMemoryUnregister")).toMatchObject({ code: "OK" });
  expect(face.registry.statuses()).toEqual([]);
});

test("an unknown name is nothing to unregister, and not found in status", async () => {
  const { call } = await start();
  expect(await call("CudaSharedMemoryUnregister", { name: "nobody" })).toMatchObject({ code: "OK" });
  expect(await call("CudaSharedMemoryStatus", { name: "nobody" })).toMatchObject({
    code: "NOT_FOUND",
    text: "Unable to find cuda shared memory region: 'nobody'",
  });
});

test("a taken name is refused", async () => {
  const { face, call } = await start();
  await call("CudaSharedMemoryRegister", face.goodRegister);
  expect(await call("CudaSharedMemoryRegister", { ...face.goodRegister, byte_size: "128" })).toMatchObject({
    code: "ALREADY_EXISTS",
    text: "shared memory region 'r' already in manager",
  });
  expect(face.registry.status("r").byteSize).toBe(64n);
});

test.each([
  ["an empty handle", { raw_handle: Buffer.alloc(0) }, "raw_handle must be the 64 bytes .*, got 0$"],
  ["a short handle", { raw_handle: Buffer.alloc(63) }, "raw_handle must be the 64 bytes .*, got 63$"],
  ["a long handle", { raw_handle: Buffer.alloc(65) }, "raw_handle must be the 64 bytes .*, got 65$"],
  [
    "a handle in base64",
    { raw_handle: Buffer.from(Buffer.alloc(64, 7).toString("base64")) },
    "88 .*base64.*decode",
  ],
  ["88 bytes that are no base64", { raw_handle: Buffer.alloc(88) }, "got 88$"],
  ["no bytes", { byte_size: "0" }, "byte_size must be at least 1"],
  ["a byte more than the allocation", { byte_size: "4097" }, "4097 .*4096"],
  ["more bytes than a double can tell", { byte_size: "9007199254740993" }, "9007199254740993"],
  ["the most bytes that fit the wire", { byte_size: "18446744073709551615" }, "18446744073709551615"],
  ["a negative device", { device_id: "-1" }, "-1.*Fake GPU 0"],
  ["a device that narrows to 0", { device_id: "4294967296" }, "4294967296.*Fake GPU 0"],
  ["the largest device", { device_id: "9223372036854775807" }, "9223372036854775807"],
  ["a folded name", { name: ".." }, "not allowed"],
  ["a name with a control character", { name: "a\nb" }, "control character"],
  ["a name of 1,025 bytes", { name: "x".repeat(1025) }, "1025 bytes"],
  ["a folded name and a short handle", { name: ".", raw_handle: Buffer.alloc(1) }, "not allowed"],
])("a register of %s is refused, with the reason, and leaves nothing open", async (_what, wrong, reason) => {
  const { face, call } = await start();
  const { code, text } = await call("CudaSharedMemoryRegister", { ...face.goodRegister, ...wrong });
  expect(code).toBe("INVALID_ARGUMENT");
  expect(text).toMatch(
    new RegExp(`^failed to register shared memory region '.*': invalid args: .*${reason}`),
  );
  expect(face.driver.opens).toBe(face.driver.closes);
  expect(face.registry.statuses()).toEqual([]);
  expect(face.faults).toEqual([]);
});

test("Triton's own test of an empty name with an empty handle finds its text", async () => {
  const { call } = await start();
  expect(await call("CudaSharedMemoryRegister", { byte_size: "1" })).toMatchObject({
    code: "INVALID_ARGUMENT",
    text: "failed to register shared memory region '': invalid args: the region name is empty",
  });
});

test("the largest sizes and devices reach the registry exactly", async () => {
  const { face, call } = await start();
  const requests: unknown[] = [];
  face.registry.register = (request) => {
    requests.push(request);
    return Promise.reject(new Error("not now"));
  };
  for (const [device_id, byte_size] of [
    ["-9223372036854775808", "18446744073709551615"],
    ["9223372036854775807", "9007199254740993"],
  ]) {
    await call("CudaSharedMemoryRegister", { ...face.goodRegister, device_id, byte_size });
  }
  expect(requests).toMatchObject([
    { deviceId: -(2n ** 63n), byteSize: 2n ** 64n - 1n },
    { deviceId: 2n ** 63n - 1n, byteSize: 2n ** 53n + 1n },
  ]);
});

test("the largest sizes reach the client exactly", async () => {
  const { face, call } = await start();
  const sizes = { r: 2n ** 64n - 1n, s: 2n ** 53n + 1n };
  const statuses = Object.entries(sizes).map(
    ([name, byteSize]) => ({ name, deviceId: 1, byteSize }) as RegionStatus & ListedRegion,
  );
  face.registry.blocks = () => [{ regions: statuses }];
  face.registry.status = () => statuses[1] as RegionStatus;
  const s = { name: "s", device_id: "1", byte_size: "9007199254740993" };
  expect((await call("CudaSharedMemoryStatus")).response).toEqual({
    regions: { r: { name: "r", device_id: "1", byte_size: "18446744073709551615" }, s },
  });
  expect((await call("CudaSharedMemoryStatus", { name: "s" })).response).toEqual({ regions: { s } });
});

test("registers can be switched off, and only they", async () => {
  const { face, call } = await start({ allowClientShm: false });
  expect(await call("CudaSharedMemoryRegister", face.goodRegister)).toMatchObject({
    code: "UNIMPLEMENTED",
    text: clientShmDisabledText,
  });
  expect(await call("CudaSharedMemoryStatus")).toMatchObject({ code: "OK" });
  expect(await call("CudaSharedMemoryUnregister")).toMatchObject({ code: "OK" });
});

test("system shared memory has no region and takes none", async () => {
  const { face, call } = await start();
  await call("CudaSharedMemoryRegister", face.goodRegister);
  expect((await call("SystemSharedMemoryStatus")).response).toEqual({ regions: {} });
  expect(await call("SystemSharedMemoryStatus", { name: "s" })).toMatchObject({
    code: "NOT_FOUND",
    text: "Unable to find system shared memory region: 's'",
  });
  expect(await call("SystemSharedMemoryRegister", { name: "s", key: "/s", byte_size: 1 })).toMatchObject({
    code: "UNIMPLEMENTED",
    text: "system shared memory is not supported: this service registers CUDA shared memory only",
  });
  expect(await call("SystemSharedMemoryUnregister")).toMatchObject({ code: "OK" });
  expect(await call("SystemSharedMemoryUnregister", { name: "r" })).toMatchObject({ code: "OK" });
  expect(face.registry.status("r").state).toBe("ready");
});

test("the server tells that it lives, whether it is ready, and what it is", async () => {
  const { face, call } = await start();
  expect((await call("ServerLive")).response).toEqual({ live: true });
  expect((await call("ServerReady")).response).toEqual({ ready: true });
  face.setReadiness("not_ready");
  expect((await call("ServerLive")).response).toEqual({ live: true });
  expect((await call("ServerReady")).response).toEqual({ ready: false });
  expect((await call("ServerMetadata")).response).toEqual({
    name: "cudashm",
    version: "1.2.3",
    extensions: ["cuda_shared_memory"],
  });
});

test("every answer has a request id of its own in its trailers", async () => {
  const { face, call } = await start();
  const answers = [
    await call("ServerLive"),
    await call("CudaSharedMemoryRegister", face.goodRegister),
    await call("CudaSharedMemoryRegister", face.goodRegister),
    await call("CudaSharedMemoryStatus", { name: "nobody" }),
  ];
  const ids = answers.flatMap(({ trailers }) => trailers.get("x-request-id"));
  expect(ids).toHaveLength(4);
  expect(new Set(ids).size).toBe(4);
});
