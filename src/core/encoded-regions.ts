import { inSlices, nextTurn } from "./event-loop.js";
import { maySee, maySeeAll } from "./policy.js";
import type { CallContext, ListedRegion } from "./region.js";
import type { Block } from "./region-list.js";
import type { RegionRegistry } from "./registry.js";

/** What of a region may be encoded here: it never changes. */
export type EncodableRegion = Pick<ListedRegion, "name" | "deviceId" | "byteSize">;

/** How regions are encoded. */
export interface RegionEncoding {
  /** Part of the answer: that of some regions, one at least. */
  encode(regions: readonly EncodableRegion[]): Buffer<ArrayBuffer>;
  /** The answer of which these are the parts. */
  join(parts: readonly Buffer<ArrayBuffer>[]): Buffer<ArrayBuffer>;
}

/** Parts that are joined and sent in the turn in which the last of them was made: more take milliseconds for each. */
const partsATurn = 32;

/**
 * The registry's regions, encoded. Kept as parts, one for each block of the list, so that a change costs the part
 * that it is in, and whole until something comes or goes. No part of it holds the event loop for long.
 */
export class EncodedRegions {
  readonly #registry: RegionRegistry;
  readonly #encoding: RegionEncoding;
  readonly #parts = new WeakMap<Block<ListedRegion>, Buffer<ArrayBuffer>>();
  #known:
    | { readonly blocks: readonly Block<ListedRegion>[]; readonly whole: Buffer<ArrayBuffer> }
    | undefined;
  /** The next one to be made, for everyone who asks before it is begun. */
  #next: Promise<Buffer<ArrayBuffer>> | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(registry: RegionRegistry, encoding: RegionEncoding) {
    this.#registry = registry;
    this.#encoding = encoding;
  }

  /** Those that the caller may see, as they were at one moment between the call and its answer. */
  visibleTo(context: CallContext): Buffer<ArrayBuffer> | Promise<Buffer<ArrayBuffer>> {
    const { policy } = this.#registry;
    return maySeeAll(policy, context) ? this.#all() : this.#only((region) => maySee(policy, context, region));
  }

  #all(): Buffer<ArrayBuffer> | Promise<Buffer<ArrayBuffer>> {
    if (this.#known?.blocks === this.#registry.blocks()) return this.#known.whole;
    if (this.#next === undefined) {
      this.#next = this.#last.then(() => {
        this.#next = undefined;
        return this.#encodeAll();
      });
      this.#last = this.#next;
    }
    return this.#next;
  }

  async #encodeAll(): Promise<Buffer<ArrayBuffer>> {
    const blocks = this.#registry.blocks();
    if (this.#known?.blocks === blocks) return this.#known.whole;
    const parts: Buffer<ArrayBuffer>[] = [];
    await inSlices(blocks, (block) => {
      parts.push(this.#partOf(block));
      return true;
    });
    const whole = await this.#join(parts);
    this.#known = { blocks, whole };
    return whole;
  }

  async #only(isVisible: (region: ListedRegion) => boolean): Promise<Buffer<ArrayBuffer>> {
    const parts: Buffer<ArrayBuffer>[] = [];
    await inSlices(this.#registry.blocks(), ({ regions }) => {
      const visible = regions.filter(isVisible);
      if (visible.length > 0) parts.push(this.#encoding.encode(visible));
      return true;
    });
    return this.#join(parts);
  }

  async #join(parts: readonly Buffer<ArrayBuffer>[]): Promise<Buffer<ArrayBuffer>> {
    if (parts.length <= partsATurn) return this.#encoding.join(parts);
    await nextTurn();
    const whole = this.#encoding.join(parts);
    await nextTurn();
    return whole;
  }

  #partOf(block: Block<ListedRegion>): Buffer<ArrayBuffer> {
    let part = this.#parts.get(block);
    if (part === undefined) {
      part = this.#encoding.encode(block.regions);
      this.#parts.set(block, part);
    }
    return part;
  }
}
