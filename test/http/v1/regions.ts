import type { FakeAllocation } from "../../helpers/fake-driver.js";
import type { Answer, Face } from "../face.js";

/** The path of a region. */
export const pathOf = (name: string, rest = ""): string => `/v1/regions/${encodeURIComponent(name)}${rest}`;

/** A registration of an allocation; `fields` are in place of its own. */
export function registration(allocation: FakeAllocation, fields: object = {}): string {
  const b64 = Buffer.from(allocation.handle.exposeBytes()).toString("base64");
  return JSON.stringify({
    raw_handle: { b64 },
    device_id: allocation.deviceId,
    byte_size: allocation.bytes.byteLength,
    ...fields,
  });
}

/** Registers an allocation under /v1. */
export function put(
  face: Face,
  name: string,
  allocation: FakeAllocation,
  fields: object = {},
  headers: Record<string, string> = {},
): Promise<Answer> {
  return face.send("PUT", pathOf(name), { body: registration(allocation, fields), headers });
}

// biome-ignore lint/suspicious/noExplicitAny: an answer has as many shapes as there are operations.
export type Body = any;

/** What a success says. Throws the text of anything else. */
export function bodyOf({ status, text }: Answer): Body {
  if (status !== 200) throw new Error(`${status}: ${text}`);
  return JSON.parse(text);
}

/** Status, code and text of a refusal. */
export function refusalOf({ status, headers, text }: Answer): readonly [number, unknown, string] {
  return [status, headers["x-error-code"], JSON.parse(text).error];
}
