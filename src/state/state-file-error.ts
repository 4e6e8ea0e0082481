import { dirname } from "node:path";

/** The state file is not to be had: the message says why and what to do about it, and nothing that is in it. */
export class StateFileError extends Error {
  override readonly name = "StateFileError";
  readonly path: string;

  constructor(path: string, problem: string, cause?: unknown) {
    super(problem, { cause });
    this.path = path;
  }
}

/** The StateFileError for what `cause` says of the file at `path`. */
export function stateFileError(path: string, cause: unknown): StateFileError {
  if (cause instanceof StateFileError) return cause;
  return new StateFileError(path, problemOf(path, cause as NodeJS.ErrnoException), cause);
}

function problemOf(path: string, { code, message }: NodeJS.ErrnoException): string {
  const folder = dirname(path);
  switch (code) {
    case "ENOENT":
    case "ENOTDIR":
      return `there is no folder ${folder}; make it or choose another path`;
    case "ELOOP":
      return "it is a symbolic link, which is not followed; give the path of the file itself";
    case "EACCES":
    case "EPERM":
      return `this user cannot read it, or cannot write to ${folder}; change that or choose another path`;
    case "EROFS":
      return `${folder} is mounted read-only; change that or choose another path`;
    case "ENOSPC":
    case "EDQUOT":
      return `there is no room for it in ${folder} (${code}); make some or choose another path`;
    case "EBUSY":
    case "EXDEV":
      return `it cannot be replaced (${code}), as where it is itself a mount; mount ${folder} instead`;
    default:
      return message;
  }
}
