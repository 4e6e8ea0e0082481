import { constants } from "node:fs";
import { open, rename, unlink } from "node:fs/promises";
import { dirname } from "node:path";

/** An open file, as far as the state file needs one. */
export interface OpenFile {
  stat(): Promise<{ isFile(): boolean; readonly mode: number; readonly uid: number; readonly nlink: number }>;
  read(into: Uint8Array, offset: number, length: number, position: number): Promise<{ bytesRead: number }>;
  write(
    from: Uint8Array,
    offset: number,
    length: number,
    position: number,
  ): Promise<{ bytesWritten: number }>;
  truncate(length: number): Promise<void>;
  chmod(mode: number): Promise<void>;
  /** Resolves once the content and the length are on the disk. */
  datasync(): Promise<void>;
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** The port to the file system, so that tests can have it fail at any call. */
export interface FileSystem {
  open(path: string, flags: number, mode?: number): Promise<OpenFile>;
  rename(from: string, to: string): Promise<void>;
  unlink(path: string): Promise<void>;
}

/** The machine's own. */
export const systemFiles: FileSystem = { open, rename, unlink };

/** Writes all of `bytes` at `position`: one write can be content with fewer. */
export async function writeAll(file: OpenFile, bytes: Uint8Array, position: number): Promise<void> {
  let done = 0;
  while (done < bytes.length) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    if (bytesWritten === 0) throw new Error("a write took none of its bytes");
    done += bytesWritten;
  }
}

/** Resolves once it is on the disk which files the folder of `path` has. Rejects if there is no such folder. */
export async function syncFolderOf(files: FileSystem, path: string): Promise<void> {
  const folder = await files.open(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Removes a file if it is there. */
export async function removeFile(files: FileSystem, path: string): Promise<void> {
  await files.unlink(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
}
