import type { Host } from "../../src/doctor/host.js";

export interface Fixture {
  readonly env?: Record<string, string>;
  readonly files?: Record<string, string>;
  readonly links?: Record<string, string>;
  readonly glibcVersion?: string | null;
}

/** A machine that has exactly these files, links and variables. */
export function fakeHost({ env = {}, files = {}, links = {}, glibcVersion = "2.36" }: Fixture = {}): Host {
  return {
    env,
    architecture: "x64",
    glibcVersion,
    readText: (path) => files[path] ?? null,
    readLink: (path) => links[path] ?? null,
    exists: (path) => Object.hasOwn(files, path) || Object.hasOwn(links, path),
  };
}
