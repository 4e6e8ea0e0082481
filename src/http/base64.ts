import { RegistryError } from "../core/errors.js";
import { IpcMemHandle, ipcMemHandleBytes } from "../core/handle.js";

const outsideTheAlphabet = /[^A-Za-z0-9+/]/g;

/** Characters of the alphabet that 64 bytes take; the four bits over are ignored. */
const handleBase64Characters = 86;

/**
 * The 64 bytes of a handle in base64, or null unless `text` has exactly 86 characters of the alphabet. Every
 * other character is skipped wherever it stands, as Triton does: its C++ client breaks the text into lines.
 */
export function decodeHandleBase64(text: string): Buffer | null {
  const plain = Buffer.from(text, "base64");
  // What comes out as it went in had nothing in it that is skipped.
  if (plain.length === ipcMemHandleBytes && plain.toString("base64") === text) return plain;
  const characters = text.replace(outsideTheAlphabet, "");
  return characters.length === handleBase64Characters ? Buffer.from(characters, "base64") : null;
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
