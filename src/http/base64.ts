import { RegistryError } from "../core/errors.js";
import { IpcMemHandle, ipcMemHandleBytes } from "../core/handle.js";

/** What stands in the table for a character outside the alphabet. */
const outside = 255;

const sextets = new Uint8Array(128).fill(outside);
for (const [value, character] of [
  ..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
].entries()) {
  sextets[character.charCodeAt(0)] = value;
}

/** Characters of the alphabet that 64 bytes take; the four bits over are ignored. */
const handleBase64Characters = 86;

/**
 * The 64 bytes of a handle in base64, or null unless `text` has exactly 86 characters of the alphabet. Every
 * other character is skipped wherever it stands, as Triton does: its C++ client breaks the text into lines.
 */
export function decodeHandleBase64(text: string): Uint8Array | null {
  const bytes = new Uint8Array(ipcMemHandleBytes);
  let characters = 0;
  let bits = 0;
  let pending = 0;
  let length = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    const sextet = code < 128 ? (sextets[code] as number) : outside;
    if (sextet === outside) continue;
    if (++characters > handleBase64Characters) return null;
    pending = ((pending << 6) | sextet) & 0xfff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes[length++] = pending >> bits;
    }
  }
  return characters === handleBase64Characters ? bytes : null;
}

/** The handle that `text` is the base64 of. Throws INVALID_ARGUMENT. */
export function handleFromBase64(text: string): IpcMemHandle {
  const bytes = decodeHandleBase64(text);
  if (bytes !== null) return new IpcMemHandle(bytes);
  throw new RegistryError(
    "INVALID_ARGUMENT",
    "'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t: expected the base64 of exactly 64 bytes",
  );
}
