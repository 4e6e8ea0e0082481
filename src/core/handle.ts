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
  /** One character a byte: of a great many handles, strings take a third of what typed arrays do. */
  readonly #bytes: string;
  #fingerprint: string | undefined;

  /** Copies `bytes`. Throws INVALID_ARGUMENT unless there are exactly 64. */
  constructor(bytes: Uint8Array) {
    if (bytes.byteLength !== ipcMemHandleBytes) {
      throw new RegistryError(
        "INVALID_ARGUMENT",
        `a CUDA IPC memory handle has ${ipcMemHandleBytes} bytes, got ${bytes.byteLength}`,
      );
    }
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
  }

  /** The secret itself, for the driver. The caller must not keep it. */
  exposeBytes(): Uint8Array {
    return Buffer.from(this.#bytes, "latin1");
  }

  /** The bytes as a map key, one character each, as secret as the bytes. */
  exposeKey(): string {
    return this.#bytes;
  }

  /** 16 hex digits of a keyed hash: equal for equal handles within this process, useless outside it. */
  get fingerprint(): string {
    this.#fingerprint ??= createHmac("sha256", fingerprintKey)
      .update(this.exposeBytes())
      .digest("hex")
      .slice(0, 16);
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
