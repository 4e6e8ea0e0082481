import { expect, test } from "vitest";
import { context, createHarness, expectRejection, request } from "../helpers/registry-harness.js";

function setUp() {
  const harness = createHarness();
  const allocation = harness.driver.allocate(4096);
  const register = (name: string, offset: bigint, byteSize: bigint) =>
    harness.registry.register(request(name, allocation.handle, { offset, byteSize }), context);
  return { ...harness, allocation, register };
}

test("a region can begin anywhere in its allocation, and several share one mapping", async () => {
  const { register, registry, driver } = setUp();
  await register("a", 0n, 1024n);
  const b = await register("b", 1024n, 3072n);
  expect(b).toMatchObject({ offset: 1024n, byteSize: 3072n, allocationByteSize: 4096n });
  expect([registry.mappings, driver.opens]).toEqual([1, 1]);
});

test.each([
  [4096n, 1n],
  [4095n, 2n],
  [1n, 4096n],
  [2n ** 64n - 1n, 2n ** 64n - 1n],
])("from offset %d on there are no %d bytes", async (offset, byteSize) => {
  const { register, registry } = setUp();
  await expectRejection(
    register("r", offset, byteSize),
    "INVALID_ARGUMENT",
    `failed to register shared memory region 'r': invalid args: offset ${offset} and byte_size ${byteSize} together exceed the 4096 bytes of the allocation`,
  );
  expect(registry.mappings).toBe(0);
});

test.each([-1n, 2n ** 64n])("offset %d is none", async (offset) => {
  const { register, driver } = setUp();
  await expectRejection(register("r", offset, 1n), "INVALID_ARGUMENT", /offset must be from 0 to/);
  expect(driver.openCalls).toBe(0);
});

test("what is read, written and summed of a region is counted from its own beginning", async () => {
  const { register, registry, allocation } = setUp();
  for (let index = 0; index < 4096; index++) allocation.bytes[index] = index % 251;
  await register("r", 100n, 50n);
  using pin = registry.pin("r", { offset: 10n, byteSize: 20n }, context);
  const bytes = new Uint8Array(5);
  await pin.read(3n, bytes);
  expect([...bytes]).toEqual([113, 114, 115, 116, 117]);
  await pin.write(0n, new Uint8Array([1, 2]));
  expect([...allocation.bytes.subarray(109, 113)]).toEqual([109, 1, 2, 112]);
  allocation.bytes.set(Buffer.from("123456789"), 115);
  expect(await pin.checksum(5n, 9n)).toBe(0xe3069283);
});

test("nothing beyond the region is reached, though it is in the allocation", async () => {
  const { register, registry } = setUp();
  await register("r", 100n, 50n);
  expect(() => registry.pin("r", { offset: 0n, byteSize: 51n }, context)).toThrow(/not within the 50 bytes/);
  using pin = registry.pin("r", null, context);
  await expectRejection(pin.read(50n, new Uint8Array(1)), "OUT_OF_RANGE", /not within the 50 bytes/);
  await expectRejection(pin.write(-1n, new Uint8Array(1)), "OUT_OF_RANGE", /not within the 50 bytes/);
  await expectRejection(pin.checksum(1n, 50n), "OUT_OF_RANGE", /not within the 50 bytes/);
  await expectRejection(pin.checksum(0n, -1n), "OUT_OF_RANGE", /not within the 50 bytes/);
});

test("a checksum can be made in parts", async () => {
  const { register, registry, allocation } = setUp();
  allocation.bytes.set(Buffer.from("123456789"), 100);
  await register("r", 100n, 9n);
  using pin = registry.pin("r", null, context);
  const first = await pin.checksum(0n, 4n);
  expect(await pin.checksum(4n, 5n, first)).toBe(0xe3069283);
});
