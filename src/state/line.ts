import { createHash } from "node:crypto";

/** The longest line that is written or read, in bytes, without its end. */
export const maxLineBytes = 64 * 1024;

const checksumDigits = 16;
const space = 0x20;

/** What a line says. */
export interface LineContent {
  /** Where in the file the write began that the line is part of: what one write left, one crash can spoil. */
  readonly start: number;
  readonly payload: string;
}

/** `<checksum> <start> <payload>` and the end of the line. The payload must have no line end in it. */
export function encodeLine({ start, payload }: LineContent): string {
  const rest = `${start} ${payload}`;
  return `${checksumOf(rest)} ${rest}\n`;
}

/** Null if the checksum does not match, so that anything may be missing. */
export function decodeLine(line: Uint8Array): LineContent | null {
  const bytes = Buffer.from(line.buffer, line.byteOffset, line.byteLength);
  const rest = bytes.subarray(checksumDigits + 1);
  if (bytes[checksumDigits] !== space) return null;
  if (bytes.toString("latin1", 0, checksumDigits) !== checksumOf(rest)) return null;
  const split = rest.indexOf(space);
  return { start: Number(rest.toString("latin1", 0, split)), payload: rest.toString("utf8", split + 1) };
}

function checksumOf(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex").slice(0, checksumDigits);
}
