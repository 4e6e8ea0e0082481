import { RegistryError } from "../core/errors.js";
import type { RegisterRequest } from "../core/region.js";
import { handleFromBase64 } from "./base64.js";
import { parseRequestJson } from "./request-json.js";

/** What a register's body says; the name is in the path. */
export type RegisterBody = Omit<RegisterRequest, "name">;

/**
 * Reads `{"raw_handle":{"b64":"..."},"device_id":0,"byte_size":64}`; other members are ignored. Throws
 * INVALID_ARGUMENT with Triton's text for the first thing that is wrong, in Triton's order.
 */
export function parseRegisterBody(body: Uint8Array): RegisterBody {
  const root = parseRequestJson(body);
  if (!isObject(root) || !Object.hasOwn(root, "raw_handle")) {
    throw refusal("Shared memory register request has no 'raw_handle' field");
  }
  const b64 = memberOf(root.raw_handle, "b64");
  if (typeof b64 !== "string") {
    throw refusal("attempt to access JSON non-string as string: 'b64' must be a string of base64");
  }
  const byteSize = unsignedMember(root, "byte_size");
  const deviceId = unsignedMember(root, "device_id");
  return { handle: handleFromBase64(b64), deviceId, byteSize };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function memberOf(value: unknown, member: string): unknown {
  if (isObject(value) && Object.hasOwn(value, member)) return value[member];
  throw refusal(`attempt to access non-existing object member '${member}'`);
}

function unsignedMember(root: Record<string, unknown>, member: string): bigint {
  const value = memberOf(root, member);
  if (typeof value === "bigint") return value;
  throw refusal(
    `attempt to access JSON non-unsigned-integer as unsigned-integer: '${member}' must be a whole number from 0 to 18446744073709551615`,
  );
}

function refusal(text: string): RegistryError {
  return new RegistryError("INVALID_ARGUMENT", text);
}
