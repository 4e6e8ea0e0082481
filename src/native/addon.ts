import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { RegistryError } from "../core/errors.js";
import { addonFailureText } from "./addon-failure.js";

/** `native/` of this package, from `src/native` and from `dist/native` alike. */
export const nativeFolder = fileURLToPath(new URL("../../native", import.meta.url));

/** An end that was to be expected; 0 and "" where a member does not apply. */
export interface RawFailure {
  readonly failed: "refused" | "full" | "closed" | "library_missing" | "library_unusable";
  /** The `CUresult`, for `refused`. */
  readonly code: number;
  /** The driver's name for `code`. */
  readonly name: string;
  /** The driver function that refused. */
  readonly call: string;
  /** For the libraries: what the loader said. */
  readonly text: string;
}

interface RawDevice {
  readonly ordinal: number;
  readonly uuid: string;
  readonly pciBusId: string;
  readonly name: string;
  readonly totalBytes: bigint;
}

interface RawMemoryInfo {
  readonly freeBytes: bigint;
  readonly totalBytes: bigint;
}

export interface RawCall {
  /** null for a call that concerns no device. */
  readonly deviceId: number | null;
  readonly what: string;
  readonly runningMs: number;
}

export interface RawMemory {
  readonly deviceId: number;
  readonly devicePointer: bigint;
  readonly byteSize: bigint;
  read(offset: bigint, into: Uint8Array): Promise<RawFailure | null>;
  write(offset: bigint, from: Uint8Array): Promise<RawFailure | null>;
  /** CRC-32C, carried on from `seed`. */
  checksum(offset: bigint, byteSize: bigint, seed: number): Promise<RawFailure | number>;
  exportHandle(): Promise<RawFailure | Uint8Array>;
  close(): Promise<RawFailure | null>;
}

export interface RawDriver {
  readonly kind: "cuda" | "emulated";
  readonly libraryPath: string;
  readonly version: number;
  /** The number of devices. */
  initialise(): Promise<RawFailure | number>;
  devices(): Promise<RawFailure | readonly RawDevice[]>;
  /** A `CUdevice_attribute` by its number. */
  attribute(deviceId: number, attribute: number): Promise<RawFailure | number>;
  memoryInfo(deviceId: number): Promise<RawFailure | RawMemoryInfo>;
  /** null where there is no context. */
  freeBytes(deviceId: number): Promise<RawFailure | bigint | null>;
  open(deviceId: number, handle: Uint8Array): Promise<RawFailure | RawMemory>;
  allocate(deviceId: number, byteSize: bigint): Promise<RawFailure | RawMemory>;
  runningCalls(): readonly RawCall[];
}

/** Why a process is not watched; 0 and "" where a member does not apply. */
export interface RawWatchFailure {
  /** `hidden`: it is there, and `/proc` does not show it. */
  readonly failed: "gone" | "another" | "hidden" | "system";
  /** Of the process that has the number now, for `another`. */
  readonly startTime: bigint;
  /** For `system`: the errno, and the call. */
  readonly code: number;
  readonly call: string;
}

interface RawWatch {
  readonly id: bigint;
  /** Whether it ended by the process's exit, not by unwatchProcess. */
  readonly exited: Promise<boolean>;
}

/** The addon as C++ exports it, name by name. */
export interface RawAddon {
  loadDriver(libraryPath: string, contextLingerMs: number): Promise<RawFailure | RawDriver>;
  /** 0, or the errno. */
  lockFile(fd: number): number;
  watchProcess(pid: number, startTime: bigint, withPidfd: boolean): RawWatchFailure | RawWatch;
  /** Every watch wants it in the end, told of the exit or not. */
  unwatchProcess(id: bigint): void;
}

export function isFailure(value: unknown): value is RawFailure {
  return typeof value === "object" && value !== null && "failed" in value;
}

let loaded: RawAddon | undefined;

/** The addon, loaded at the first call. Throws UNAVAILABLE, with what to run, where there is none. */
export function loadAddon(): RawAddon {
  if (loaded === undefined) {
    try {
      const load = createRequire(import.meta.url)("node-gyp-build") as (folder: string) => RawAddon;
      loaded = load(nativeFolder);
    } catch (cause) {
      throw new RegistryError("UNAVAILABLE", addonFailureText(cause, nativeFolder), { cause });
    }
  }
  return loaded;
}
