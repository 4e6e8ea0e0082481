import { lstatSync, unlinkSync } from "node:fs";
import { chmod, chown, lstat, mkdtemp, rename, rm, rmdir } from "node:fs/promises";
import { connect, createServer, type Server, type ServerOpts, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { closed, listening } from "./tcp.js";

export interface UnixSocketOptions {
  /** Absolute. `isSocketPath` tells whether it is short enough. */
  readonly path: string;
  /** Who may connect, as bits of a file's mode: connecting takes the right to write. */
  readonly mode: number;
  /** The group that the socket's file is given to; null leaves it the process's. */
  readonly gid: number | null;
}

/** A Unix socket that listens. */
export interface UnixListener {
  readonly server: Server;
  /** Removes the socket's file, unless another has taken its place. Comes before the server's close. */
  remove(): void;
}

/** A Unix socket is not to be had: the message says why and what to do about it. */
export class UnixSocketError extends Error {
  override readonly name = "UnixSocketError";
  readonly path: string;

  constructor(path: string, problem: string, cause?: unknown) {
    super(problem, { cause });
    this.path = path;
  }
}

// What the system's address of a socket holds, without the NUL at its end.
const maxPathBytes = 107;
// Short, since what is bound in the folder must fit too.
const nameInFolder = "s";

/** Where a folder of our own is made for a socket at `path`; six characters are added to it. */
function folderPrefix(path: string): string {
  return `${dirname(path)}/.`;
}

/** True if `path` is an absolute one that a socket can have. */
export function isSocketPath(path: string): boolean {
  const whileBinding = `${folderPrefix(path)}XXXXXX/${nameInFolder}`;
  return (
    path.startsWith("/") &&
    !path.endsWith("/") &&
    !path.includes("\0") &&
    [path, whileBinding].every((bound) => Buffer.byteLength(bound) <= maxPathBytes)
  );
}

/**
 * Listens on a socket that nobody can connect to before it has its mode and group: it is bound inside a folder
 * of its own that only this user can enter, and moved into place when it is ready. What a killed process left
 * at the path is replaced; anything else there is refused with UnixSocketError.
 */
export async function listenUnix(
  { path, mode, gid }: UnixSocketOptions,
  options: ServerOpts,
  onConnection: (socket: Socket) => void,
): Promise<UnixListener> {
  const folder = await mkdtemp(folderPrefix(path)).catch((error: unknown) => {
    throw new UnixSocketError(path, folderProblem(dirname(path), error), error);
  });
  const bound = join(folder, nameInFolder);
  const server = createServer(options, onConnection);
  try {
    await listening(server.listen(bound));
    if (gid !== null) await giveToGroup(path, bound, gid);
    await chmod(bound, mode);
    const { dev, ino } = await lstat(bound, { bigint: true });
    // As late as can be: a second service that starts now must find the first one's socket.
    await assertFree(path);
    await rename(bound, path);
    await rmdir(folder);
    return { server, remove: () => removeIfSame(path, dev, ino) };
  } catch (error) {
    if (server.listening) await closed(server);
    await rm(folder, { recursive: true, force: true });
    if (error instanceof UnixSocketError) throw error;
    throw new UnixSocketError(path, (error as Error).message, error);
  }
}

async function giveToGroup(path: string, bound: string, gid: number): Promise<void> {
  try {
    await chown(bound, -1, gid);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPERM") throw error;
    const problem = `this user may not give it to group ${gid}; make the user a member of that group`;
    throw new UnixSocketError(path, problem, error);
  }
}

/** Throws UnixSocketError unless there is nothing at `path`, or a socket that nobody listens on. */
async function assertFree(path: string): Promise<void> {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  if (found === null) return;
  if (!found.isSocket()) {
    throw new UnixSocketError(path, "there is something that is no socket; remove it or choose another path");
  }
  const answer = await connectTo(path);
  if (answer === "ECONNREFUSED" || answer === "ENOENT") return;
  throw new UnixSocketError(
    path,
    answer === "connected"
      ? "another process listens there; stop it or choose another path"
      : `there is a socket of which ${answer} does not tell whether it is in use; remove it or choose another path`,
  );
}

function connectTo(path: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => {
      socket.destroy();
      resolve("connected");
    });
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  });
}

function removeIfSame(path: string, dev: bigint, ino: bigint): void {
  try {
    const found = lstatSync(path, { bigint: true });
    if (found.dev === dev && found.ino === ino) unlinkSync(path);
  } catch {
    // Gone already, or the folder can no longer be written: a stop goes on, and the next start replaces it.
  }
}

function folderProblem(folder: string, error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  switch (code) {
    case "ENOENT":
    case "ENOTDIR":
      return `there is no folder ${folder}; make it or choose another path`;
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return `this user cannot write to ${folder}; change that or choose another path`;
    default:
      return message;
  }
}
