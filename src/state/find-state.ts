import { constants } from "node:fs";
import type { FileSystem, OpenFile } from "./file-system.js";
import { Ledger } from "./ledger.js";
import { type ReadState, readState } from "./read-state.js";
import { StateFileError } from "./state-file-error.js";

/** Reads the state file at `path`; nothing is in it if there is none. Rejects if it is not this user's alone. */
export async function findState(files: FileSystem, path: string): Promise<ReadState> {
  let file: OpenFile;
  try {
    file = await files.open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { ledger: new Ledger(), cutBytes: 0 };
    throw error;
  }
  try {
    await assertOurs(path, file);
    return await readState(path, file);
  } finally {
    await file.close();
  }
}

async function assertOurs(path: string, file: OpenFile): Promise<void> {
  const found = await file.stat();
  if (!found.isFile()) {
    throw new StateFileError(path, "there is something that is no file; remove it or choose another path");
  }
  const user = process.geteuid?.();
  if (found.uid !== user) {
    throw new StateFileError(
      path,
      `it belongs to user ${found.uid}, who could change it, and this is user ${user}; run chown ${user} on it or choose another path`,
    );
  }
  if ((found.mode & 0o077) !== 0) {
    throw new StateFileError(
      path,
      "it holds handles, and other users of this machine have rights to it; run chmod 600 on it",
    );
  }
}
