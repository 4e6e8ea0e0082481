import { close, constants, open } from "node:fs";
import { getSystemErrorMap, promisify } from "node:util";
import { RegistryError } from "../core/errors.js";
import { loadAddon } from "./addon.js";

/** A lock that this process holds until it releases it or ends, in whatever way. */
export interface FileLock {
  /** Lets go of the lock and leaves the file where it is. The second time does nothing. */
  release(): Promise<void>;
}

// A bare number: a FileHandle that nobody refers to is closed when it is collected, and the lock with it.
const openFile = promisify(open);
const closeFile = promisify(close);

// libuv opens everything O_CLOEXEC, so no child process holds the lock after us.
const flags = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW;

/**
 * Takes the lock of the file at `path`, which is made with mode 0600 if it is not there. Rejects with
 * FAILED_PRECONDITION if somebody else holds it, and with UNAVAILABLE if the file cannot be opened or locked.
 */
export async function lockFile(path: string): Promise<FileLock> {
  const fd = await openFile(path, flags, 0o600).catch((cause: NodeJS.ErrnoException) => {
    const reason = cause.code === "ELOOP" ? "it is a symbolic link" : cause.message;
    throw new RegistryError("UNAVAILABLE", `the lock ${path} cannot be opened: ${reason}`, { cause });
  });
  try {
    requireLocked(fd, path);
  } catch (error) {
    await closeFile(fd);
    throw error;
  }
  let released: Promise<void> | undefined;
  return {
    release() {
      released ??= closeFile(fd);
      return released;
    },
  };
}

function requireLocked(fd: number, path: string): void {
  const errno = loadAddon().lockFile(fd);
  if (errno === 0) return;
  const [name, text] = getSystemErrorMap().get(-errno) ?? [`errno ${errno}`, "unknown"];
  if (name === "EAGAIN") {
    throw new RegistryError(
      "FAILED_PRECONDITION",
      `another process holds the lock ${path}: end that process, or use another path`,
    );
  }
  throw new RegistryError("UNAVAILABLE", `the lock ${path} cannot be taken: ${name}: ${text}`);
}
