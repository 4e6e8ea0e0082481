import { compareRegionNames } from "./region-name.js";

// Small enough to copy and to encode anew in no time, large enough that there are few: 100,000 regions are some 300.
const maxBlockLength = 512;

/** Regions that follow each other in the list. It never changes: what changes the list puts another in its place. */
export interface Block<Region> {
  /** At least one, sorted by the bytes of their names. */
  readonly regions: readonly Region[];
}

interface OwnBlock<Region> {
  regions: Region[];
  /** From then on it is no longer ours to change. */
  isHandedOut: boolean;
}

/**
 * The visible regions, sorted by the bytes of their names. They are kept in sorted blocks, so that neither a
 * change nor a look takes long when there are 100,000: one array would be moved about by each change, one
 * sorted on demand would hold up whoever looks first. What is made of a block is good as long as the block is there.
 */
export class RegionList<Region extends { readonly name: string }> {
  readonly #blocks: OwnBlock<Region>[] = [];
  #handedOut: readonly Block<Region>[] | undefined;

  /** All there is at this moment: the same array until a region is added or removed. */
  blocks(): readonly Block<Region>[] {
    if (this.#handedOut === undefined) {
      for (const block of this.#blocks) block.isHandedOut = true;
      this.#handedOut = [...this.#blocks];
    }
    return this.#handedOut;
  }

  add(region: Region): void {
    const at = this.#blockIndexOf(region.name);
    if (this.#blocks.length === 0) this.#blocks.push({ regions: [], isHandedOut: false });
    const regions = this.#change(at);
    regions.splice(indexIn(regions, region.name), 0, region);
    if (regions.length <= maxBlockLength) return;
    this.#blocks.splice(at + 1, 0, { regions: regions.splice(maxBlockLength / 2), isHandedOut: false });
  }

  remove(name: string): void {
    const at = this.#blockIndexOf(name);
    const regions = this.#change(at);
    regions.splice(indexIn(regions, name), 1);
    if (regions.length === 0) this.#blocks.splice(at, 1);
  }

  /** The regions of a block that nobody else has. */
  #change(index: number): Region[] {
    this.#handedOut = undefined;
    const block = this.#blocks[index] as OwnBlock<Region>;
    if (!block.isHandedOut) return block.regions;
    const regions = [...block.regions];
    this.#blocks[index] = { regions, isHandedOut: false };
    return regions;
  }

  /** The block that holds the name, or should: the last that begins no later. */
  #blockIndexOf(name: string): number {
    let low = 0;
    let high = this.#blocks.length;
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      const first = this.#blocks[middle]?.regions[0] as Region;
      if (compareRegionNames(first.name, name) <= 0) low = middle;
      else high = middle;
    }
    return low;
  }
}

/** Where in `regions`, sorted, the name is, or should be. */
function indexIn(regions: readonly { readonly name: string }[], name: string): number {
  let low = 0;
  let high = regions.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareRegionNames((regions[middle] as { name: string }).name, name) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
