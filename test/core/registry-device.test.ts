import { expect, test } from "vitest";
import { driverError } from "../helpers/fake-driver.js";
import { context, createHarness, expectRejection, request } from "../helpers/registry-harness.js";

const uuids = [0, 1].map((index) => `GPU-00000000-0000-0000-0000-00000000000${index}`);

test("a device is named by its number, by its UUID, or by both if they agree", async () => {
  const { driver, registry } = createHarness();
  const { handle } = driver.allocate(64, 1);
  const ways = [
    { deviceId: 1n },
    { deviceId: undefined, deviceUuid: uuids[1] },
    { deviceId: 1n, deviceUuid: uuids[1] },
  ];
  for (const [index, fields] of ways.entries()) {
    const region = await registry.register(request(`r${index}`, handle, fields), context);
    expect(region).toMatchObject({ deviceId: 1, deviceUuid: uuids[1] });
  }
  expect(registry.mappings).toBe(1);
});

test.each([
  ["none", { deviceId: undefined }, /say on which device the memory is, by device_id or by device_uuid/],
  [
    "an unknown UUID",
    { deviceId: undefined, deviceUuid: "GPU-x" },
    /device_uuid GPU-x is no device of this service; its devices: 0 \(GPU-.*0\), 1 \(GPU-.*1\)/,
  ],
  [
    "what is no UUID",
    { deviceId: undefined, deviceUuid: "QUFB".repeat(22) },
    /invalid args: device_uuid is no device of this service; its devices: 0 /,
  ],
  ["an unknown number", { deviceId: 2n ** 32n }, /device_id 4294967296 is no device of this service/],
  [
    "two that disagree",
    { deviceId: 0n, deviceUuid: uuids[1] },
    /device_uuid GPU-.*1 is device 1, not device_id 0; give one of them/,
  ],
])("%s is no device to register on", async (_, fields, text) => {
  const { driver, registry } = createHarness();
  const registering = registry.register(request("r", driver.allocate(64).handle, fields), context);
  await expectRejection(registering, "INVALID_ARGUMENT", text);
  expect([driver.openCalls, registry.statuses()]).toEqual([0, []]);
});

test("each device tells what of it is held here, what is shared once", async () => {
  const { driver, registry } = createHarness();
  const [shared, other] = [driver.allocate(4096, 1), driver.allocate(100, 1)];
  for (const [name, { handle }] of [
    ["a", shared],
    ["b", shared],
    ["c", other],
  ] as const) {
    await registry.register(request(name, handle, { deviceId: 1n }), context);
  }
  const [first, second] = await registry.devices();
  expect(first).toMatchObject({
    ordinal: 0,
    uuid: uuids[0],
    mappedBytes: 0n,
    regions: 0,
    totalBytes: 1n << 33n,
  });
  expect(second).toMatchObject({ ordinal: 1, uuid: uuids[1], mappedBytes: 4196n, regions: 3 });
  await registry.unregister("a", context);
  await registry.unregister("c", context);
  expect((await registry.devices())[1]).toMatchObject({ mappedBytes: 4096n, regions: 1 });
});

test("devices that the driver does not list are UNAVAILABLE", async () => {
  const { driver, registry } = createHarness();
  driver.devicesError = driverError(999, "CUDA_ERROR_UNKNOWN", "cuDeviceGetCount");
  await expectRejection(registry.devices(), "UNAVAILABLE", /the CUDA driver does not list its devices/);
});
