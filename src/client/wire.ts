import { invalidArgument } from "./errors.js";

/** A region as the service lists it. */
export interface RegionStatus {
  readonly name: string;
  readonly deviceId: number;
  /** In bytes, exact. */
  readonly byteSize: bigint;
}

/** The body of a register, every digit of its numbers kept. */
export function encodeRegistration(
  rawHandle: Uint8Array | string,
  deviceId: bigint | number,
  byteSize: bigint | number,
): string {
  const b64 = typeof rawHandle === "string" ? rawHandle : encodeBase64(rawHandle);
  return (
    `{"raw_handle":{"b64":${JSON.stringify(b64)}},` +
    `"device_id":${digitsOf("deviceId", deviceId)},"byte_size":${digitsOf("byteSize", byteSize)}}`
  );
}

/** Throws INVALID_ARGUMENT for a number that is not whole, or too large for a number to hold it exactly. */
export function digitsOf(what: string, value: bigint | number): string {
  if (typeof value === "bigint" || Number.isSafeInteger(value)) return String(value);
  throw invalidArgument(
    `${what} is ${String(value)}, which is no exact whole number: give a bigint above 2^53 - 1`,
  );
}

function encodeBase64(bytes: Uint8Array): string {
  let characters = "";
  for (const byte of bytes) characters += String.fromCharCode(byte);
  return btoa(characters);
}

const stringOrNumber = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const digits = /^\d+$/;

/** The regions in a status answer. Throws if it is not one. */
export function decodeStatuses(json: string): RegionStatus[] {
  // JSON.parse would round sizes above 2^53, so it is given every number as a string.
  const exact = json.replace(stringOrNumber, (token) => (token.startsWith('"') ? token : `"${token}"`));
  return (JSON.parse(exact) as unknown[]).map(decodeStatus);
}

function decodeStatus(value: unknown): RegionStatus {
  const { name, device_id: deviceId, byte_size: byteSize } = value as Readonly<Record<string, unknown>>;
  if (typeof name !== "string" || !isDigits(deviceId) || !isDigits(byteSize)) {
    throw new TypeError("a region without a name, a device_id or a byte_size");
  }
  return { name, deviceId: Number(deviceId), byteSize: BigInt(byteSize) };
}

function isDigits(value: unknown): value is string {
  return typeof value === "string" && digits.test(value);
}
