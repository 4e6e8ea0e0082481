import { existsSync } from "node:fs";
import { join } from "node:path";
import { RegistryError } from "../core/errors.js";
import { nativeFolder } from "./addon.js";
import { missingBuildText } from "./addon-failure.js";

/** File name of the emulated driver, the same as of NVIDIA's. */
export const driverLibraryName = "libcuda.so.1";

/** First bytes of every handle the emulated driver makes; a real one begins so by no chance. */
export const emulatedHandleMagic = "CUDASHM-EMULATED";

/**
 * The folder that holds the emulated `libcuda.so.1`: of this source tree's build, else beside the prebuilt
 * addon. Throws UNAVAILABLE, with what to run, where there is neither.
 */
export function emulatedDriverFolder(): string {
  const folders = [
    join(nativeFolder, "build", "Release", "emulated"),
    join(nativeFolder, "prebuilds", `${process.platform}-${process.arch}`, "emulated"),
  ];
  const folder = folders.find((candidate) => existsSync(join(candidate, driverLibraryName)));
  if (folder === undefined) {
    throw new RegistryError("UNAVAILABLE", missingBuildText("emulated driver", nativeFolder));
  }
  return folder;
}
