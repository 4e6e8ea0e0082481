import type { DeviceMapping } from "./driver.js";
import { RegistryError } from "./errors.js";
import { copyFailed, pinRevoked } from "./refusals.js";
import type { RegionPin, RegionStatus, RegionWindow } from "./region.js";

/** Throws OUT_OF_RANGE unless `window` lies within `byteSize` bytes. */
export function assertWithin(window: RegionWindow, byteSize: bigint, whole: string): void {
  if (window.offset >= 0n && window.byteSize >= 0n && window.offset + window.byteSize <= byteSize) return;
  throw new RegistryError(
    "OUT_OF_RANGE",
    `${window.byteSize} bytes at offset ${window.offset} are not within the ${byteSize} bytes of ${whole}`,
  );
}

/** The registry's side of {@link RegionPin}. A copy under way holds the memory as the pin itself does. */
export class Pin implements RegionPin {
  readonly region: RegionStatus;
  readonly byteSize: bigint;
  readonly #mapping: DeviceMapping;
  readonly #offset: bigint;
  readonly #letGo: (pin: Pin) => void;
  #released = false;
  #revoked = false;
  #onRevoked: (() => void) | undefined;
  #copies = 0;

  /** Calls `letGo` once: after the release, when the last copy has ended. */
  constructor(region: RegionStatus, mapping: DeviceMapping, window: RegionWindow, letGo: (pin: Pin) => void) {
    this.region = region;
    this.byteSize = window.byteSize;
    this.#mapping = mapping;
    this.#offset = region.offset + window.offset;
    this.#letGo = letGo;
  }

  read(offset: bigint, into: Uint8Array): Promise<void> {
    return this.#copy(offset, into, (start) => this.#mapping.read(start, into));
  }

  write(offset: bigint, from: Uint8Array): Promise<void> {
    return this.#copy(offset, from, (start) => this.#mapping.write(start, from));
  }

  async checksum(offset: bigint, byteSize: bigint, seed?: number): Promise<number> {
    let sum = 0;
    await this.#use(offset, byteSize, async (start) => {
      sum = await this.#mapping.checksum(start, byteSize, seed);
    });
    return sum;
  }

  release(): void {
    if (this.#released) return;
    this.#released = true;
    if (this.#copies === 0) this.#letGo(this);
  }

  /** Releases it for whoever holds it, who is told so at once if he asked for that, else by the next use. */
  revoke(): void {
    this.#revoked = true;
    this.release();
    this.#onRevoked?.();
  }

  onRevoked(run: () => void): () => void {
    this.#onRevoked = run;
    if (this.#revoked) run();
    return () => {
      this.#onRevoked = undefined;
    };
  }

  [Symbol.dispose](): void {
    this.release();
  }

  #copy(offset: bigint, bytes: Uint8Array, copy: (start: bigint) => Promise<void>): Promise<void> {
    return this.#use(offset, BigInt(bytes.byteLength), copy);
  }

  async #use(offset: bigint, byteSize: bigint, use: (start: bigint) => Promise<void>): Promise<void> {
    if (this.#revoked) throw pinRevoked(this.region.name);
    if (this.#released) {
      throw new RegistryError("FAILED_PRECONDITION", "the pin was released; pin the region again");
    }
    assertWithin({ offset, byteSize }, this.byteSize, "the pinned window");
    this.#copies++;
    try {
      await use(this.#offset + offset);
    } catch (error) {
      throw copyFailed(this.region.name, error);
    } finally {
      this.#copies--;
      if (this.#released && this.#copies === 0) this.#letGo(this);
    }
  }
}
