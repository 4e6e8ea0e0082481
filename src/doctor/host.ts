import { existsSync, readFileSync, readlinkSync } from "node:fs";

/** What the probes see of the machine and of this process. */
export interface Host {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** As Node names it, such as `x64`. */
  readonly architecture: string;
  /** null where the C library is not glibc. */
  readonly glibcVersion: string | null;
  /** The text of a file, or null if it cannot be read. */
  readText(path: string): string | null;
  /** Where a symbolic link points, or null if it cannot be read. */
  readLink(path: string): string | null;
  exists(path: string): boolean;
}

/** The machine that this process runs on. */
export function thisHost(env: Host["env"]): Host {
  return {
    env,
    architecture: process.arch,
    glibcVersion: glibcVersion(),
    readText: (path) => orNull(() => readFileSync(path, "utf8")),
    readLink: (path) => orNull(() => readlinkSync(path)),
    exists: existsSync,
  };
}

function orNull<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}

function glibcVersion(): string | null {
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return header.glibcVersionRuntime ?? null;
}
