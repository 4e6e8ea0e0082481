import { overLimit } from "./refusals.js";

/** How much a registry takes. Left out: as much as there is. */
export interface RegistryLimits {
  /** Regions there may be at once, those being registered and those that could not be closed included. */
  readonly maxRegions?: number;
  /** Bytes of allocations that may be mapped on one device; what several regions share counts once. */
  readonly maxDeviceBytes?: bigint;
  /** Bytes that the regions of one owner may have together, each as it was registered. */
  readonly maxOwnerBytes?: bigint;
}

/** What of a region counts against the limits. */
interface Claim {
  readonly name: string;
  readonly owner: string;
  readonly byteSize: bigint;
}

/** The part of the limits that is known before the driver is asked: who holds how much of it. */
export class Capacity {
  readonly #limits: RegistryLimits;
  readonly #ownerBytes = new Map<string, bigint>();

  constructor(limits: RegistryLimits) {
    this.#limits = limits;
  }

  /**
   * Counts a region that joins `regions` others, one of which it may be about to replace. Throws
   * RESOURCE_EXHAUSTED if it is one too many.
   */
  take({ name, owner, byteSize }: Claim, regions: number, replaced?: Claim): void {
    const { maxRegions, maxOwnerBytes } = this.#limits;
    if (maxRegions !== undefined && regions - (replaced ? 1 : 0) >= maxRegions) {
      throw overLimit(
        name,
        `there are as many regions as this service takes (${maxRegions}, --max-regions); unregister some first`,
      );
    }
    if (maxOwnerBytes === undefined) return;
    const held = this.#ownerBytes.get(owner) ?? 0n;
    const staying = replaced?.owner === owner ? held - replaced.byteSize : held;
    if (staying + byteSize > maxOwnerBytes) {
      throw overLimit(
        name,
        `the regions of '${owner}' have ${staying} bytes; with the ${byteSize} of this one they would exceed the ${maxOwnerBytes} that one client may register (--max-owner-bytes); unregister some first`,
      );
    }
    this.#ownerBytes.set(owner, held + byteSize);
  }

  /** The region is gone. */
  giveBack({ owner, byteSize }: Claim): void {
    if (this.#limits.maxOwnerBytes === undefined) return;
    const left = (this.#ownerBytes.get(owner) ?? 0n) - byteSize;
    if (left > 0n) this.#ownerBytes.set(owner, left);
    else this.#ownerBytes.delete(owner);
  }
}
