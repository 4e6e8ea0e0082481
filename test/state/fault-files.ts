import { type FileSystem, type OpenFile, systemFiles } from "../../src/state/file-system.js";

/** A call of the file system. */
export interface FileCall {
  readonly name: "open" | "rename" | "unlink" | Exclude<keyof OpenFile, "read">;
  /** Of the file or folder. */
  readonly path: string;
}

export interface FileHooks {
  /** Throws, or waits, before a call does anything. */
  readonly before?: (call: FileCall) => void | Promise<void>;
  /** Called once a call has done what it does. */
  readonly after?: (call: FileCall) => void;
  /** Most bytes that one write takes. */
  readonly maxWrite?: number;
}

/** `files` (the machine's own unless given), with hooks around each call that changes anything. */
export function hookedFiles(hooks: FileHooks, files: FileSystem = systemFiles): FileSystem {
  async function step<T>(name: FileCall["name"], path: string, run: () => Promise<T>): Promise<T> {
    await hooks.before?.({ name, path });
    const result = await run();
    hooks.after?.({ name, path });
    return result;
  }
  function hooked(file: OpenFile, path: string): OpenFile {
    return {
      stat: () => file.stat(),
      read: (...args) => file.read(...args),
      write: (from, offset, length, position) =>
        step("write", path, () =>
          file.write(from, offset, Math.min(length, hooks.maxWrite ?? length), position),
        ),
      truncate: (length) => step("truncate", path, () => file.truncate(length)),
      chmod: (mode) => step("chmod", path, () => file.chmod(mode)),
      datasync: () => step("datasync", path, () => file.datasync()),
      sync: () => step("sync", path, () => file.sync()),
      close: () => step("close", path, () => file.close()),
    };
  }
  return {
    open: (path, flags, mode) =>
      step("open", path, async () => hooked(await files.open(path, flags, mode), path)),
    rename: (from, to) => step("rename", to, () => files.rename(from, to)),
    unlink: (path) => step("unlink", path, () => files.unlink(path)),
  };
}

/** An error as the system gives it. */
export function systemError(code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: as the test has it`), { code });
}
