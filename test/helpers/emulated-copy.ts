import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { driverLibraryName, emulatedDriverFolder } from "../../src/native/emulated-driver.js";
import { callLog } from "./call-log.js";

/**
 * The emulated driver as a library of its own, with a call log and `variables` of its own: it reads them at its
 * first call, so tests in one process can each have another. `unmarked` passes for NVIDIA's.
 */
export function emulatedCopy(variables: Readonly<Record<string, string>> = {}, unmarked = false) {
  const folder = mkdtempSync(join(tmpdir(), "cudashm-driver-"));
  const path = join(folder, driverLibraryName);
  copyFileSync(join(emulatedDriverFolder(), driverLibraryName), path);
  if (unmarked) hideMarker(path);
  const log = callLog();
  const all: Record<string, string> = { ...variables, ...log.variables };
  return {
    path,
    log,
    variables: all,
    /** Runs `use`, in which the library has to be called for the first time, with its variables in place. */
    async withVariables<T>(use: () => Promise<T>): Promise<T> {
      Object.assign(process.env, all);
      try {
        return await use();
      } finally {
        for (const name of Object.keys(all)) delete process.env[name];
      }
    },
    [Symbol.dispose]: () => {
      log[Symbol.dispose]();
      rmSync(folder, { recursive: true });
    },
  };
}

// The loader finds a symbol by the hash of its name and then by the name, which is no longer there.
function hideMarker(path: string): void {
  const marker = Buffer.from("\0cudashm_emulated_driver\0");
  const library = readFileSync(path);
  let at = library.indexOf(marker);
  if (at < 0) throw new Error("the emulated driver has no marker");
  for (; at >= 0; at = library.indexOf(marker, at + 1)) library.write("_", at + 1);
  writeFileSync(path, library);
}
