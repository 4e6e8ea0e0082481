import { constants } from "node:fs";
import { encodeEntry } from "./entry.js";
import { type FileSystem, type OpenFile, removeFile, writeAll } from "./file-system.js";
import type { Ledger } from "./ledger.js";
import { encodeLine } from "./line.js";
import { header } from "./read-state.js";

/** A file that is on the disk whole, and open for more. */
export interface WrittenFile {
  readonly file: OpenFile;
  /** Bytes. */
  readonly length: number;
  readonly lines: number;
}

/** Characters in one write: encoding them takes about a millisecond, in which nothing else runs. */
export const maxWriteLength = 128 * 1024;

/**
 * Writes what the ledger holds to a new file at `path` that only this user can read, and waits until it is on the
 * disk. If that fails there is no such file. The ledger must not change meanwhile.
 */
export async function writeState(files: FileSystem, path: string, ledger: Ledger): Promise<WrittenFile> {
  await removeFile(files, path);
  const file = await files.open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
  try {
    // The mode above is what the umask leaves of it.
    await file.chmod(0o600);
    let length = 0;
    let lines = 1;
    let slice = `${header}\n`;
    const flush = async () => {
      const bytes = Buffer.from(slice);
      await writeAll(file, bytes, length);
      length += bytes.length;
      slice = "";
    };
    for (const entry of ledger.entries()) {
      slice += encodeLine({ start: 0, payload: encodeEntry(entry) });
      lines++;
      if (slice.length >= maxWriteLength) await flush();
    }
    await flush();
    await file.sync();
    return { file, length, lines };
  } catch (error) {
    await file.close().catch(() => {});
    // It may be what fills the disk.
    await removeFile(files, path).catch(() => {});
    throw error;
  }
}
