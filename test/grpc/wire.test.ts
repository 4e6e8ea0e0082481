import { BinaryReader, BinaryWriter } from "@bufbuild/protobuf/wire";
import { Client, compressionAlgorithms, credentials, status } from "@grpc/grpc-js";
import { describe, expect, onTestFinished, test } from "vitest";
import { addressOf, createCaller, createRawCaller, createTestFace, startServer } from "./harness.js";

async function start() {
  const face = createTestFace();
  const address = addressOf(await startServer(face));
  return { face, call: createCaller(address), raw: createRawCaller(address) };
}

/** A message with `name`, given as bytes, in field 1. */
function named(name: Uint8Array): Uint8Array {
  return new BinaryWriter().uint32(10).bytes(name).finish();
}

/** A register request with `name` given as bytes. */
function registerNamed(name: Uint8Array, handle: Uint8Array = new Uint8Array(64)): Uint8Array {
  return new BinaryWriter().uint32(10).bytes(name).uint32(18).bytes(handle).uint32(32).uint64(64n).finish();
}

/** Names in a status response, keys and values alike, read by hand and in order. */
function statusNames(response: Uint8Array): string[] {
  const names: string[] = [];
  const reader = new BinaryReader(response);
  while (reader.pos < reader.len) {
    expect(reader.tag()).toEqual([1, 2]);
    const entry = new BinaryReader(reader.bytes());
    expect(entry.tag()).toEqual([1, 2]);
    const key = entry.string();
    expect(entry.tag()).toEqual([2, 2]);
    const value = new BinaryReader(entry.bytes());
    expect(value.tag()).toEqual([1, 2]);
    expect(value.string()).toBe(key);
    names.push(key);
  }
  return names;
}

describe("bytes that are no message", () => {
  const calls = ["CudaSharedMemoryStatus", "CudaSharedMemoryRegister", "CudaSharedMemoryUnregister"];
  const malformed: [string, number[]][] = [
    ["tag 0 alone", [0x00]],
    ["tag 0 before the name", [0x00, 0x0a, 0x01, 0x72]],
    ["an end of a group that never began", [0x0c]],
    ["an end of a group before the name", [0x0c, 0x0a, 0x01, 0x72]],
    ["a group that never ends", [0x7b]],
    ["a field cut short", [0x0a, 0x05, 0x72]],
    ["a length beyond any message", [0x0a, 0xff, 0xff, 0xff, 0xff, 0x07]],
    ["a length of which only the bits beyond 32 are set", [0x0a, 0x80, 0x80, 0x80, 0x80, 0x10]],
    ["a length of 2^63", [0x0a, ...Array<number>(9).fill(0x80), 0x01]],
    ["such a length in a group", [0x7b, 0x12, ...Array<number>(9).fill(0x80), 0x01, 0x7c]],
    ["a tag of more than 32 bits that ends in the name's", [0x8a, 0x80, 0x80, 0x80, 0x10, 0x00]],
    [
      "groups without an end to their depth",
      [...Array<number>(101).fill(0x7b), ...Array<number>(101).fill(0x7c)],
    ],
    ["the end of a group within another", [0x7b, 0x73, 0x7c, 0x74]],
    ["a tag cut short", [0x80]],
    ["a number that never ends", [0x18, ...Array<number>(11).fill(0xff)]],
    ["a wire type that is none", [0x0f]],
  ];
  test.each(calls.flatMap((call) => malformed.map(([what, bytes]) => [call, what, bytes] as const)))(
    "to %s: %s is refused and changes nothing",
    async (method, _what, bytes) => {
      const { face, call, raw } = await start();
      await call("CudaSharedMemoryRegister", face.goodRegister);
      expect(await raw(method, Uint8Array.from(bytes))).toMatchObject({
        code: "INVALID_ARGUMENT",
        text: expect.stringMatching(/the request cannot be decoded: the bytes are no such message$/),
      });
      expect(face.registry.statuses()).toHaveLength(1);
      expect(face.faults).toEqual([]);
    },
  );

  test.each(calls)("to %s: a name that is not UTF-8 is refused and changes nothing", async (method) => {
    const { face, call, raw } = await start();
    await call("CudaSharedMemoryRegister", face.goodRegister);
    for (const name of [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80], [0x72, 0xf8]]) {
      expect(await raw(method, registerNamed(Uint8Array.from(name)))).toMatchObject({
        code: "INVALID_ARGUMENT",
        text: expect.stringMatching(/the request cannot be decoded: a string is not valid UTF-8$/),
      });
    }
    expect(face.registry.statuses()).toHaveLength(1);
  });

  test("a register of them is refused as every register's arguments are", async () => {
    const { raw } = await start();
    const prefix =
      "failed to register shared memory region '': invalid args: the request cannot be decoded: ";
    expect((await raw("CudaSharedMemoryRegister", Uint8Array.of(0x0a))).text).toBe(
      `${prefix}the bytes are no such message`,
    );
    expect((await raw("CudaSharedMemoryRegister", registerNamed(Uint8Array.of(0xff)))).text).toBe(
      `${prefix}a string is not valid UTF-8`,
    );
  });
});

test("fields that a later client may send are skipped", async () => {
  const { face, raw } = await start();
  const extra = new BinaryWriter()
    .uint32((15 << 3) | 0)
    .uint64(1n)
    .uint32((16 << 3) | 2)
    .string("later")
    .uint32((17 << 3) | 3)
    .uint32((17 << 3) | 4)
    .finish();
  const bytes = Buffer.concat([extra, registerNamed(Buffer.from("r"), face.goodRegister.raw_handle), extra]);
  expect(await raw("CudaSharedMemoryRegister", bytes)).toMatchObject({ code: "OK" });
  expect(face.registry.statuses()).toMatchObject([{ name: "r" }]);
});

test("the bytes of a name come back as they were sent, and no two names become one", async () => {
  const { face, raw } = await start();
  const names = [
    "my region",
    "a/b",
    "100%",
    "%41",
    "a%2541",
    "入力テンソル",
    "caf\u00e9",
    "cafe\u0301",
    "\ufeffr",
    "r",
    "\ufffd",
    "__proto__",
    "constructor",
    "toString",
    "\u{1f600}",
    "x".repeat(1024),
  ];
  for (const name of names) {
    expect(
      await raw("CudaSharedMemoryRegister", registerNamed(Buffer.from(name), face.goodRegister.raw_handle)),
    ).toMatchObject({
      code: "OK",
    });
  }
  const sorted = names.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  expect(face.registry.statuses().map(({ name }) => name)).toEqual(sorted);
  expect(statusNames((await raw("CudaSharedMemoryStatus", new Uint8Array())).response)).toEqual(sorted);
  for (const name of names) {
    const bytes = named(Buffer.from(name));
    expect(statusNames((await raw("CudaSharedMemoryStatus", bytes)).response)).toEqual([name]);
    expect(await raw("CudaSharedMemoryUnregister", bytes)).toMatchObject({ code: "OK" });
    expect(await raw("CudaSharedMemoryStatus", bytes)).toMatchObject({
      code: "NOT_FOUND",
      text: `Unable to find cuda shared memory region: '${name}'`,
    });
  }
});

test("a request may be as large as the limit, and not a byte larger", async () => {
  const { raw } = await start();
  const padded = (size: number) => {
    const field = new BinaryWriter()
      .uint32((15 << 3) | 2)
      .bytes(new Uint8Array(size - 4))
      .finish();
    expect(field).toHaveLength(size);
    return field;
  };
  expect(await raw("CudaSharedMemoryStatus", padded(65_536))).toMatchObject({ code: "OK" });
  expect(await raw("CudaSharedMemoryStatus", padded(65_537))).toMatchObject({ code: "RESOURCE_EXHAUSTED" });
  expect(await raw("CudaSharedMemoryStatus", padded(2_000_000))).toMatchObject({
    code: "RESOURCE_EXHAUSTED",
  });
  expect(await raw("CudaSharedMemoryStatus", new Uint8Array())).toMatchObject({ code: "OK" });
});

test("a client may compress its requests, but not beyond the limit", async () => {
  const face = createTestFace();
  const server = await startServer(face);
  const client = new Client(addressOf(server), credentials.createInsecure(), {
    "grpc.default_compression_algorithm": compressionAlgorithms.gzip,
  });
  onTestFinished(() => client.close());
  const asIs = (bytes: Buffer) => bytes;
  const register = (bytes: Uint8Array) =>
    new Promise((resolve) => {
      const path = "/inference.GRPCInferenceService/CudaSharedMemoryRegister";
      client.makeUnaryRequest(path, asIs, asIs, Buffer.from(bytes), (error) =>
        resolve(error?.code ?? status.OK),
      );
    });
  expect(await register(registerNamed(Buffer.from("r"), face.goodRegister.raw_handle))).toBe(status.OK);
  expect(await register(named(new Uint8Array(10_000_000)))).toBe(status.RESOURCE_EXHAUSTED);
  expect(face.registry.statuses()).toMatchObject([{ name: "r" }]);
});

test("calls that this service does not have are unimplemented", async () => {
  const { raw } = await start();
  for (const method of [
    "ModelInfer",
    "ModelStreamInfer",
    "ModelReady",
    "RepositoryIndex",
    "TraceSetting",
    "x",
  ]) {
    expect(await raw(method, new Uint8Array())).toMatchObject({ code: "UNIMPLEMENTED" });
  }
});
