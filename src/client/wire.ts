import { count, membersOf, parseExact, text, whole } from "./read-json.js";
import { digitsOf, objectOf, rawHandleOf } from "./write-json.js";

/** A region as Triton's API lists it. */
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
  return objectOf({
    raw_handle: rawHandleOf(rawHandle),
    device_id: digitsOf("deviceId", deviceId),
    byte_size: digitsOf("byteSize", byteSize),
  });
}

/** The regions in a status answer. Throws if it is not one. */
export function decodeStatuses(json: string): RegionStatus[] {
  return (parseExact(json) as unknown[]).map(decodeStatus);
}

function decodeStatus(value: unknown): RegionStatus {
  const members = membersOf(value);
  return {
    name: text(members, "name"),
    deviceId: count(members, "device_id"),
    byteSize: whole(members, "byte_size"),
  };
}
