import { join } from "node:path";
import type { DriverKind } from "../core/driver.js";
import { RegistryError } from "../core/errors.js";
import { NoGpuError } from "./driver-failure.js";
import { driverLibraryName, emulatedDriverFolder } from "./emulated-driver.js";
import { NativeDriver } from "./native-driver.js";

/** `auto`: the real driver where it loads and finds a device, else the emulated one. */
export type DriverPreference = "auto" | "cuda" | "emulated";

export interface DriverChoice {
  readonly preference: DriverPreference;
  /** Loaded instead of `libcuda.so.1`, or for `emulated` instead of our own. */
  readonly libraryPath?: string;
  /** How long a context outlives the last memory on its device, in milliseconds; 0 is not at all. */
  readonly contextLingerMs: number;
  /** Told, in a sentence, when the choice may surprise the operator. */
  readonly warn?: (text: string) => void;
}

/** Loads and initialises the driver that the choice comes to. Rejects with UNAVAILABLE and the reason. */
export async function chooseDriver(choice: DriverChoice): Promise<NativeDriver> {
  switch (choice.preference) {
    case "emulated":
      return await useKind("emulated", choice.libraryPath ?? emulatedLibraryPath(), choice);
    case "cuda":
      return await useKind("cuda", choice.libraryPath ?? driverLibraryName, choice);
    case "auto":
      return await useEither(choice);
  }
}

async function useKind(kind: DriverKind, path: string, choice: DriverChoice): Promise<NativeDriver> {
  const driver = await NativeDriver.load(path, choice.contextLingerMs);
  if (driver.kind !== kind) {
    const is = driver.kind === "emulated" ? "is the emulated driver" : "is not the emulated driver";
    throw new RegistryError("UNAVAILABLE", `${path} ${is}, and the driver asked for is '${kind}'`);
  }
  await driver.initialise();
  return driver;
}

async function useEither(choice: DriverChoice): Promise<NativeDriver> {
  try {
    const driver = await NativeDriver.load(choice.libraryPath ?? driverLibraryName, choice.contextLingerMs);
    await driver.initialise();
    if (driver.kind === "emulated") {
      choice.warn?.(
        `${driver.description.libraryPath} is the emulated driver: memory is on the host, not on a GPU`,
      );
    }
    return driver;
  } catch (error) {
    // Any other reason is a GPU that does not work, which nobody wants to find replaced by a make-believe one.
    if (!(error instanceof NoGpuError)) throw error;
    const driver = await useKind("emulated", emulatedLibraryPath(), choice);
    choice.warn?.(`using the emulated driver, with memory on the host: ${error.message}`);
    return driver;
  }
}

function emulatedLibraryPath(): string {
  return join(emulatedDriverFolder(), driverLibraryName);
}
