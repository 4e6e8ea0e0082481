import { invalidArgument } from "./errors.js";

/** Throws INVALID_ARGUMENT for a number that is not whole, or too large for a number to hold it exactly. */
export function digitsOf(what: string, value: bigint | number): string {
  if (typeof value === "bigint" || Number.isSafeInteger(value)) return String(value);
  throw invalidArgument(
    `${what} is ${String(value)}, which is no exact whole number: give a bigint above 2^53 - 1`,
  );
}

/** Milliseconds as seconds. Throws INVALID_ARGUMENT for a number that is not whole. */
export function secondsOf(what: string, milliseconds: number): string {
  if (Number.isSafeInteger(milliseconds)) return String(milliseconds / 1000);
  throw invalidArgument(`${what} is ${String(milliseconds)}, expected a whole number of milliseconds`);
}

/** An object of members that are JSON already, without those that are undefined. */
export function objectOf(members: Readonly<Record<string, string | undefined>>): string {
  const written = Object.entries(members).filter(([, json]) => json !== undefined);
  return `{${written.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(",")}}`;
}

/** A handle, given as its bytes or in base64, as bodies carry it. */
export function rawHandleOf(rawHandle: Uint8Array | string): string {
  const b64 = typeof rawHandle === "string" ? rawHandle : encodeBase64(rawHandle);
  return objectOf({ b64: JSON.stringify(b64) });
}

function encodeBase64(bytes: Uint8Array): string {
  let characters = "";
  for (const byte of bytes) characters += String.fromCharCode(byte);
  return btoa(characters);
}
