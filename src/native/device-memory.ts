import type { DeviceMapping } from "../core/driver.js";
import { RegistryError } from "../core/errors.js";
import { IpcMemHandle } from "../core/handle.js";
import type { RawFailure, RawMemory } from "./addon.js";

/** Device memory that this process allocated, for other processes to import. Offsets and sizes are bytes. */
export interface DeviceAllocation extends AsyncDisposable {
  readonly deviceId: number;
  readonly byteSize: bigint;
  /** The handle by which other processes import it. Rejects with DriverError. */
  exportHandle(): Promise<IpcMemHandle>;
  /** Copies `into.byteLength` bytes at `offset` out of device memory. Rejects with DriverError. */
  read(offset: bigint, into: Uint8Array): Promise<void>;
  /** Copies `from` into device memory at `offset`. Rejects with DriverError. */
  write(offset: bigint, from: Uint8Array): Promise<void>;
  /** Frees the memory; importers keep theirs. Rejects with DriverError, and may then be called again. */
  free(): Promise<void>;
}

/** Throws what a failure means, after the driver has taken note of it. */
type Checked = <T>(result: T | RawFailure) => T;

// A piece is copied once more on the loop's thread, which it must not hold up for more than a fraction of a millisecond.
const pieceBytes = 1024 * 1024;

// No lane is held by one checksum for longer than this many bytes take.
const checksumPieceBytes = 4n * 1024n * 1024n;

class NativeMemory {
  readonly #raw: RawMemory;
  readonly #checked: Checked;
  readonly deviceId: number;
  readonly byteSize: bigint;

  constructor(raw: RawMemory, checked: Checked) {
    this.#raw = raw;
    this.#checked = checked;
    this.deviceId = raw.deviceId;
    this.byteSize = raw.byteSize;
  }

  // An accessor, so that printing the object does not show it.
  get devicePointer(): bigint {
    return this.#raw.devicePointer;
  }

  async exportHandle(): Promise<IpcMemHandle> {
    return new IpcMemHandle(this.#checked(await this.#raw.exportHandle()));
  }

  async read(offset: bigint, into: Uint8Array): Promise<void> {
    await this.#inPieces(offset, into, (at, piece) => this.#raw.read(at, piece));
  }

  async write(offset: bigint, from: Uint8Array): Promise<void> {
    await this.#inPieces(offset, from, (at, piece) => this.#raw.write(at, piece));
  }

  async checksum(offset: bigint, byteSize: bigint, seed = 0): Promise<number> {
    this.#requireRange(offset, byteSize);
    const end = offset + byteSize;
    let checksum = seed;
    let at = offset;
    // At least one piece, as of a copy.
    do {
      const left = end - at;
      const piece = left < checksumPieceBytes ? left : checksumPieceBytes;
      checksum = this.#checked(await this.#raw.checksum(at, piece, checksum));
      at += piece;
    } while (at < end);
    return checksum;
  }

  close(): Promise<void> {
    return this.#raw.close().then(this.#checkEnd);
  }

  readonly #checkEnd = (result: RawFailure | null): void => {
    this.#checked(result);
  };

  #requireRange(offset: bigint, byteSize: bigint): void {
    if (offset >= 0n && byteSize >= 0n && offset + byteSize <= this.byteSize) return;
    throw new RegistryError(
      "OUT_OF_RANGE",
      `${byteSize} bytes at offset ${offset} reach beyond the allocation, which has ${this.byteSize} bytes`,
    );
  }

  async #inPieces(
    offset: bigint,
    bytes: Uint8Array,
    copy: (at: bigint, piece: Uint8Array) => Promise<RawFailure | null>,
  ): Promise<void> {
    const length = bytes.byteLength;
    this.#requireRange(offset, BigInt(length));
    let done = 0;
    // At least one piece, so that an empty copy is refused after a close as any other.
    do {
      const end = Math.min(done + pieceBytes, length);
      this.#checked(await copy(offset + BigInt(done), bytes.subarray(done, end)));
      done = end;
    } while (done < length);
  }
}

/** An imported allocation. */
export class NativeMapping extends NativeMemory implements DeviceMapping {
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** An allocation of this process. */
export class NativeAllocation extends NativeMemory implements DeviceAllocation {
  async free(): Promise<void> {
    await this.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
