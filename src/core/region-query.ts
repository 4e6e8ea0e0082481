import { RegistryError } from "./errors.js";
import type { RegionState, RegionStatus } from "./region.js";
import { compareRegionNames } from "./region-name.js";

/** Which regions to list: those that match all that is given. */
export interface RegionQuery {
  readonly owner?: string | undefined;
  /** Ordinal or UUID. */
  readonly device?: string | undefined;
  readonly state?: RegionState | undefined;
  /** Matches a region of which some label, written `key=value`, begins so. */
  readonly labelPrefix?: string | undefined;
  /** 1 to 1000; 100 unless given. */
  readonly pageSize?: number | undefined;
  /** The `nextPageToken` of the page before. */
  readonly pageToken?: string | undefined;
}

/** Part of a list, sorted by the bytes of the names. */
export interface RegionPage {
  readonly regions: readonly RegionStatus[];
  /** Empty at the end. */
  readonly nextPageToken: string;
  readonly revision: bigint;
}

const defaultPageSize = 100;
const maxPageSize = 1000;

/** The page of `sorted` that the query asks for. Throws INVALID_ARGUMENT. */
export function pageOf(
  sorted: readonly RegionStatus[],
  query: RegionQuery,
): Pick<RegionPage, "regions" | "nextPageToken"> {
  const { pageSize = defaultPageSize, pageToken = "" } = query;
  if (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > maxPageSize) {
    throw new RegistryError(
      "INVALID_ARGUMENT",
      `page_size must be from 1 to ${maxPageSize}, got ${pageSize}`,
    );
  }
  const regions: RegionStatus[] = [];
  for (
    let index = pageToken === "" ? 0 : indexAfter(sorted, nameIn(pageToken));
    index < sorted.length;
    index++
  ) {
    const region = sorted[index] as RegionStatus;
    if (!matches(region, query)) continue;
    if (regions.length === pageSize) {
      return { regions, nextPageToken: tokenAfter(regions[pageSize - 1] as RegionStatus) };
    }
    regions.push(region);
  }
  return { regions, nextPageToken: "" };
}

function matches(region: RegionStatus, { owner, device, state, labelPrefix }: RegionQuery): boolean {
  if (owner !== undefined && region.owner !== owner) return false;
  if (device !== undefined && String(region.deviceId) !== device && region.deviceUuid !== device)
    return false;
  if (state !== undefined && region.state !== state) return false;
  if (labelPrefix === undefined) return true;
  for (const [key, value] of region.labels) if (`${key}=${value}`.startsWith(labelPrefix)) return true;
  return false;
}

// The last name of a page says where the next begins, whatever came and went meanwhile.
function tokenAfter({ name }: RegionStatus): string {
  return Buffer.from(name).toString("base64url");
}

function nameIn(pageToken: string): string {
  const name = Buffer.from(pageToken, "base64url").toString();
  if (Buffer.from(name).toString("base64url") !== pageToken) {
    throw new RegistryError(
      "INVALID_ARGUMENT",
      "page_token is none of this service's; send the next_page_token of the page before, or none",
    );
  }
  return name;
}

/** Where the names after `name` begin. */
function indexAfter(sorted: readonly RegionStatus[], name: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareRegionNames((sorted[middle] as RegionStatus).name, name) > 0) high = middle;
    else low = middle + 1;
  }
  return low;
}
