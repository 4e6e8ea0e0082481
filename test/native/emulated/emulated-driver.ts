import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export const run = promisify(execFile);

export const repository = fileURLToPath(new URL("../../..", import.meta.url));

/** The emulated driver as it ships. */
export const library = `${repository}native/build/Release/emulated/libcuda.so.1`;
