import { query } from "./query.js";
import { digitsOf } from "./write-json.js";

/** Part of a region. */
export interface RegionWindow {
  /** In bytes from the start of the region; 0 if left out. */
  readonly offset?: bigint | number | undefined;
  /** To the end of the region if left out. */
  readonly byteSize?: bigint | number | undefined;
}

/** The window as the query of a path. Throws INVALID_ARGUMENT for numbers that are not exact. */
export function windowQuery({ offset = 0, byteSize }: RegionWindow): string {
  return query({
    offset: digitsOf("offset", offset),
    byte_size: byteSize === undefined ? undefined : digitsOf("byteSize", byteSize),
  });
}
