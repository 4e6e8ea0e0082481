import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { inspect } from "node:util";
import { RegistryError } from "./errors.js";

/** Size of a `cudaIpcMemHandle_t` in bytes. */
export const ipcMemHandleBytes = 64;

// Keyed per process: a fingerprint tells two handles apart in one log and says nothing about either.
const fingerprintKey = randomBytes(32);

/**
 * The 64 opaque bytes of a `cudaIpcMemHandle_t`. Whoever holds them can map the memory, so they are a secret:
 * printing, logging or serialising one shows a fingerprint, and only {@link exposeBytes} gives the bytes.
 */
export class IpcMemHandle {
  readonly #bytes: Uint8Array;
  #fingerprint: string | undefined;

  /** Copies `bytes`. Throws INVALID_ARGUMENT unless there are exactly 64. */
  constructor(bytes: Uint8Array) {
    if (bytes.byteLength !== ipcMemHandleBytes) {
      throw new RegistryError(
        "INVALID_ARGUMENT",
        `a CUDA IPC memory handle has ${ipcMemHandleBytes} bytes, got ${bytes.byteLength}`,
      );
    }
    this.#bytes = new Uint8Array(bytes);
  }

  /** The secret itself, for the driver. The caller must neither change nor keep it. */
  exposeBytes(): Uint8Array {
    return this.#bytes;
  }

  /** The bytes as a map key, as secret as the bytes. */
  exposeKey(): string {
    return Buffer.from(this.#bytes).toString("latin1");
  }

  /** 16 hex digits of a keyed hash: equal for equal handles within this process, useless outside it. */
  get fingerprint(): string {
    this.#fingerprint ??= createHmac("sha256", fingerprintKey).update(this.#bytes).digest("hex").slice(0, 16);
    return this.#fingerprint;
  }

  toString(): string {
    return `IpcMemHandle(${this.fingerprint})`;
  }

  toJSON(): string {
    return this.toString();
  }

  [inspect.custom](): string {
    return this.toString();
  }
}

/** Whether both are of the same memory. Takes as long whatever they have in common. */
export function isSameHandle(a: IpcMemHandle, b: IpcMemHandle): boolean {
  return timingSafeEqual(a.exposeBytes(), b.exposeBytes());
}
