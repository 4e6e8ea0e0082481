import { decodeEntry, type Entry } from "./entry.js";
import type { OpenFile } from "./file-system.js";
import { Ledger } from "./ledger.js";
import { decodeLine, maxLineBytes } from "./line.js";
import { StateFileError } from "./state-file-error.js";

/** The first line of a state file of this version. */
export const header = "cudashm-state 1";

/** What a state file holds. */
export interface ReadState {
  readonly ledger: Ledger;
  /** Bytes at its end that are of no use: of a write that a crash cut short, so that nobody was told of it. */
  readonly cutBytes: number;
}

const whatToDo =
  "put back a copy that is good, or move the file away to start without any regions: clients then register anew";

/**
 * Reads a state file: the header, lines that were all on the disk before the file had its name, of which the first
 * `counters` is the last, and lines added since. Rejects with StateFileError if a line is spoiled of which a
 * client may have been told, or not understood.
 */
export async function readState(path: string, file: OpenFile): Promise<ReadState> {
  const ledger = new Ledger();
  let isFirstPartWhole = false;
  let spoiled: Line | null = null;
  // Where the write begins that the line before is part of.
  let write = 0;
  const size = await eachLine(file, (line) => {
    if (line.number === 1) return assertHeader(path, line);
    const content = line.bytes && decodeLine(line.bytes);
    if (content === null) {
      spoiled ??= line;
      if (!isFirstPartWhole) throw spoiledLine(path, spoiled);
      return;
    }
    // A write begins only when the one before it is on the disk, so this one's start tells what was.
    if (spoiled !== null && content.start > spoiled.offset) throw spoiledLine(path, spoiled);
    // Each part of the file was written at one place, so a line at another one was moved, or others before it were.
    if (isFirstPartWhole && content.start === (spoiled ?? line).offset) write = content.start;
    if (content.start !== write) throw spoiledLine(path, line);
    const entry = entryOf(path, line, content.payload);
    if (spoiled !== null) return;
    ledger.apply(entry);
    isFirstPartWhole ||= entry.kind === "counters";
  });
  if (size > 0 && !isFirstPartWhole) {
    throw new StateFileError(path, `its end is missing, which no crash of cudashm takes away; ${whatToDo}`);
  }
  return { ledger, cutBytes: spoiled === null ? 0 : size - (spoiled as Line).offset };
}

function assertHeader(path: string, { bytes }: Line): void {
  const found = bytes && Buffer.from(bytes).toString("latin1");
  if (found === header) return;
  const version = found?.match(/^cudashm-state (\d{1,9})$/)?.[1];
  if (version === undefined) {
    throw new StateFileError(path, "that is no state file of cudashm; move it away or choose another path");
  }
  throw new StateFileError(
    path,
    `it has version ${version} of the format, and this cudashm knows version 1 only; start the cudashm that wrote it, or choose another path`,
  );
}

function entryOf(path: string, { number }: Line, payload: string): Entry {
  try {
    return decodeEntry(payload);
  } catch {
    // Without the cause: it can quote the line, and so a handle.
    throw new StateFileError(
      path,
      `line ${number} is whole but says nothing that this version knows; ${whatToDo}`,
    );
  }
}

function spoiledLine(path: string, { number }: Line): StateFileError {
  return new StateFileError(
    path,
    `line ${number} is damaged, and not by a crash of cudashm, which can only spoil what was written last; ${whatToDo}`,
  );
}

interface Line {
  /** From 1. */
  readonly number: number;
  /** Where it begins, in bytes from the start of the file. */
  readonly offset: number;
  /** Null if it is too long or has no end. To be used at once. */
  readonly bytes: Uint8Array | null;
}

const chunkBytes = 256 * 1024;
const lineEnd = 0x0a;
const nothing = Buffer.alloc(0);

/** Calls `onLine` with each line; resolves with the size of the file. Never holds more than a chunk and a line. */
async function eachLine(file: OpenFile, onLine: (line: Line) => void): Promise<number> {
  const chunk = Buffer.alloc(chunkBytes);
  let position = 0;
  let number = 1;
  let offset = 0;
  let begun = nothing;
  for (;;) {
    const { bytesRead } = await file.read(chunk, 0, chunk.length, position);
    if (bytesRead === 0) break;
    const data = Buffer.concat([begun, chunk.subarray(0, bytesRead)]);
    position += bytesRead;
    const dataOffset = position - data.length;
    for (let end = data.indexOf(lineEnd); end !== -1; end = data.indexOf(lineEnd, offset - dataOffset)) {
      const isTooLong = dataOffset + end - offset > maxLineBytes;
      onLine({ number, offset, bytes: isTooLong ? null : data.subarray(offset - dataOffset, end) });
      number++;
      offset = dataOffset + end + 1;
    }
    begun = position - offset > maxLineBytes ? nothing : data.subarray(offset - dataOffset);
  }
  if (offset < position) onLine({ number, offset, bytes: null });
  return position;
}
