import type { RegionStatus } from "./region.js";
import { compareRegionNames } from "./region-name.js";

// Small enough to insert into and to sort nothing, large enough that there are few: 100,000 regions are some 300.
const maxBlockLength = 512;

type Block = RegionStatus[];

/**
 * The visible regions, sorted by the bytes of their names. They are kept in sorted blocks, so that neither a
 * change nor a look takes long when there are 100,000: one array would be moved about by each change, one
 * sorted on demand would hold up whoever looks first.
 */
export class RegionList {
  readonly #blocks: Block[] = [[]];
  #statuses: readonly RegionStatus[] | undefined;

  /** The same array until something changes. */
  statuses(): readonly RegionStatus[] {
    this.#statuses ??= ([] as RegionStatus[]).concat(...this.#blocks);
    return this.#statuses;
  }

  add(region: RegionStatus): void {
    const at = this.#blockIndexOf(region.name);
    const block = this.#change(at);
    block.splice(indexIn(block, region.name), 0, region);
    if (block.length > maxBlockLength) this.#blocks.splice(at + 1, 0, block.splice(maxBlockLength / 2));
  }

  /** Shows the region of that name as it is now. */
  replace(region: RegionStatus): void {
    const block = this.#change(this.#blockIndexOf(region.name));
    block[indexIn(block, region.name)] = region;
  }

  remove(name: string): void {
    const at = this.#blockIndexOf(name);
    const block = this.#change(at);
    block.splice(indexIn(block, name), 1);
    if (block.length === 0 && this.#blocks.length > 1) this.#blocks.splice(at, 1);
  }

  #change(index: number): Block {
    this.#statuses = undefined;
    return this.#blocks[index] as Block;
  }

  /** The block that holds the name, or should: the last that begins no later. */
  #blockIndexOf(name: string): number {
    const after = lowestWhere(this.#blocks.length, (index) => {
      const first = this.#blocks[index]?.[0];
      return first !== undefined && compareRegionNames(first.name, name) > 0;
    });
    return Math.max(after - 1, 0);
  }
}

function indexIn(block: Block, name: string): number {
  return lowestWhere(
    block.length,
    (index) => compareRegionNames((block[index] as RegionStatus).name, name) >= 0,
  );
}

/** The lowest index for which `test` holds, given that it holds for all above it; else `length`. */
function lowestWhere(length: number, test: (index: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (test(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
