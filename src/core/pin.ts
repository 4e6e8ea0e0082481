import type { DeviceMapping } from "./driver.js";
import { RegistryError } from "./errors.js";
import { copyFailed } from "./refusals.js";
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
  readonly #letGo: () => void;
  #released = false;
  #copies = 0;

  /** Calls `letGo` once: after the release, when the last copy has ended. */
  constructor(region: RegionStatus, mapping: DeviceMapping, window: RegionWindow, letGo: () => void) {
    this.region = region;
    this.byteSize = window.byteSize;
    this.#mapping = mapping;
    this.#offset = window.offset;
    this.#letGo = letGo;
  }

  read(offset: bigint, into: Uint8Array): Promise<void> {
    return this.#copy(offset, into, (start) => this.#mapping.read(start, into));
  }

  write(offset: bigint, from: Uint8Array): Promise<void> {
    return this.#copy(offset, from, (start) => this.#mapping.write(start, from));
  }

  release(): void {
    if (this.#released) return;
    this.#released = true;
    if (this.#copies === 0) this.#letGo();
  }

  [Symbol.dispose](): void {
    this.release();
  }

  async #copy(offset: bigint, bytes: Uint8Array, copy: (start: bigint) => Promise<void>): Promise<void> {
    if (this.#released) {
      throw new RegistryError("FAILED_PRECONDITION", "the pin was released; pin the region again");
    }
    const length = BigInt(bytes.byteLength);
    assertWithin({ offset, byteSize: length }, this.byteSize, "the pinned window");
    this.#copies++;
    try {
      await copy(this.#offset + offset);
    } catch (error) {
      throw copyFailed(this.region.name, error);
    } finally {
      this.#copies--;
      if (this.#released && this.#copies === 0) this.#letGo();
    }
  }
}
