import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeStatuses, encodeRegistration } from "../../src/client/wire.js";
import { encodeStatuses } from "../../src/http/status-json.js";

const uint64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const name = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom('"byte_size":1', "12", '\\"9\\\\', '","byte_size":7,"', "\u2028"),
);

test("gives back the names and sizes that the service listed, to the last digit", () => {
  const region = fc.record({ name, deviceId: fc.nat(), byteSize: uint64 });
  fc.assert(
    fc.property(fc.array(region, { maxLength: 5 }), (regions) => {
      expect(decodeStatuses(encodeStatuses(regions as never))).toEqual(regions);
    }),
  );
});

test("reads statuses however they are laid out, with members it does not know", () => {
  const json =
    '[ {\n"more": [-1.5e-3, {"byte_size": 2}], "byte_size" : 18446744073709551615,\n"device_id": 3, "name":"12"} ]';
  expect(decodeStatuses(json)).toEqual([{ name: "12", deviceId: 3, byteSize: 2n ** 64n - 1n }]);
});

test.each([
  "",
  "<html>",
  "null",
  "{}",
  '{"name":"r","device_id":0,"byte_size":1}',
  "[1]",
  "[null]",
  '[{"name":"r","device_id":0}]',
  '[{"name":["r"],"device_id":0,"byte_size":1}]',
  '[{"name":"r","device_id":0,"byte_size":-1}]',
  '[{"name":"r","device_id":0,"byte_size":1.5}]',
  '[{"name":"r","device_id":0,"byte_size":1e3}]',
  '[{"name":"r","device_id":0,"byte_size":"sixty"}]',
])("does not take %j for statuses", (json) => {
  expect(() => decodeStatuses(json)).toThrow();
});

test("writes handles as base64 and numbers with every digit", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 130 }), uint64, uint64, (handle, deviceId, byteSize) => {
      const b64 = Buffer.from(handle).toString("base64");
      const body = `{"raw_handle":{"b64":"${b64}"},"device_id":${deviceId},"byte_size":${byteSize}}`;
      expect(encodeRegistration(handle, deviceId, byteSize)).toBe(body);
    }),
  );
});
