import { describe, expect, it } from "vitest";
import { parseRegisterBody } from "../../src/http/register-body.js";

const b64 = Buffer.from(Uint8Array.from({ length: 64 }, (_, i) => i)).toString("base64");
const body = (members: string) => `{"raw_handle":{"b64":"${b64}"},${members}}`;
const parse = (text: string | Uint8Array) => parseRegisterBody(Buffer.from(text as string));

function expectRefusal(text: string | Uint8Array, message: string | RegExp): void {
  const expected = typeof message === "string" ? message : expect.stringMatching(message);
  expect(() => parse(text)).toThrow(expect.objectContaining({ code: "INVALID_ARGUMENT", message: expected }));
}

describe("parseRegisterBody", () => {
  it("reads handle, device and size", () => {
    const parsed = parse(body('"device_id":1,"byte_size":64'));
    expect(parsed.deviceId).toBe(1n);
    expect(parsed.byteSize).toBe(64n);
    expect(Buffer.from(parsed.handle.exposeBytes()).toString("base64")).toBe(b64);
  });

  it.each([
    ["0", 0n],
    ["-0", 0n],
    ["9007199254740993", 2n ** 53n + 1n],
    ["18446744073709551615", 2n ** 64n - 1n],
  ])("keeps every digit of %s", (digits, value) => {
    expect(parse(body(`"device_id":${digits},"byte_size":${digits}`))).toMatchObject({
      deviceId: value,
      byteSize: value,
    });
  });

  it.each(["64.0", "1e2", '"64"', "true", "null", "-1", "18446744073709551616", "[]", "{}", "1E0", "0.0"])(
    "takes %s for no unsigned integer, in byte_size before device_id",
    (value) => {
      const text =
        /^attempt to access JSON non-unsigned-integer as unsigned-integer: '(byte_size|device_id)'/;
      expectRefusal(body(`"device_id":${value},"byte_size":64`), text);
      expectRefusal(body(`"device_id":0,"byte_size":${value}`), text);
      expectRefusal(body(`"device_id":${value},"byte_size":${value}`), /: 'byte_size' must be/);
    },
  );

  it.each(["{}", "[]", "null", '"x"', "1", "true", '{"byte_size":1,"device_id":0}', '["raw_handle"]'])(
    "misses raw_handle in %s",
    (text) => {
      expectRefusal(text, "Shared memory register request has no 'raw_handle' field");
    },
  );

  it.each(['"text"', "{}", "null", "[]", "7", '{"B64":"x"}'])(
    "misses b64 in a raw_handle of %s",
    (handle) => {
      expectRefusal(`{"raw_handle":${handle}}`, "attempt to access non-existing object member 'b64'");
    },
  );

  it.each(["7", "null", "{}", "true"])("refuses a b64 of %s", (value) => {
    expectRefusal(`{"raw_handle":{"b64":${value}}}`, /^attempt to access JSON non-string as string/);
  });

  it("names the first of the members that are missing", () => {
    expectRefusal(body('"x":1'), "attempt to access non-existing object member 'byte_size'");
    expectRefusal(body('"byte_size":1'), "attempt to access non-existing object member 'device_id'");
  });

  it("looks at the numbers before the length of the handle", () => {
    expectRefusal('{"raw_handle":{"b64":"AA=="},"device_id":0}', /'byte_size'$/);
    expectRefusal(
      '{"raw_handle":{"b64":"AA=="},"device_id":0,"byte_size":1}',
      /^'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t/,
    );
  });

  it("ignores other members, a byte order mark, and blanks around", () => {
    const text = `\ufeff \n${body('"extra":{"deep":[1.5,null]},"device_id":0,"byte_size":64')}\r\n\t`;
    expect(parse(text).byteSize).toBe(64n);
  });

  it("takes __proto__ for an ordinary member that gives nothing to others", () => {
    const hidden = `{"__proto__":{"raw_handle":{"b64":"${b64}"},"device_id":0,"byte_size":1}}`;
    expectRefusal(hidden, "Shared memory register request has no 'raw_handle' field");
    expect(({} as { byte_size?: unknown }).byte_size).toBeUndefined();
    expectRefusal('{"raw_handle":{"__proto__":{"b64":"x"}}}', /non-existing object member 'b64'$/);
  });

  it.each([
    ["nothing", "", "the body is empty at 0"],
    ["an open brace", "{", /at 1$/],
    ["a cut string", '{"raw_handle":{"b64":"AA', /at 24$/],
    ["two documents", "{}{}", /at 2$/],
    ["a comment", "{}//", /at 2$/],
    ["single quotes", "{'a':1}", /at 1$/],
    ["a leading zero", body('"device_id":00,"byte_size":1'), / at \d+$/],
    ["NaN", body('"device_id":NaN,"byte_size":1'), / at \d+$/],
    ["a second value for a key", body('"device_id":0,"device_id":1'), / at \d+$/],
  ])("says where %s stops being JSON", (_what, text, why) => {
    const start = "failed to parse the request JSON buffer: ";
    expectRefusal(text, typeof why === "string" ? start + why : new RegExp(`^${start}.*${why.source}`));
  });

  it("refuses 100,000 levels without breaking", () => {
    expectRefusal(
      "[".repeat(100_000),
      "failed to parse the request JSON buffer: the body is nested too deep",
    );
    expectRefusal('{"a":'.repeat(100_000), /nested too deep$/);
  });

  it("refuses bytes that are not UTF-8", () => {
    const bytes = Buffer.concat([Buffer.from('{"x":"'), Buffer.from([0xc0, 0xaf]), Buffer.from('"}')]);
    expectRefusal(bytes, "failed to parse the request JSON buffer: the body is not UTF-8");
  });

  it("never repeats a handle that stands in the wrong place", () => {
    for (const text of [`{"${b64}":1,"${b64}":2}`, `{"raw_handle":"${b64}"}`, `"${b64}`, `[${b64}]`]) {
      expect(() => parse(text)).toThrow(
        expect.objectContaining({ message: expect.not.stringContaining(b64) }),
      );
    }
  });
});
