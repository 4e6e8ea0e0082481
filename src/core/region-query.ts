import { RegistryError } from "./errors.js";
import { inSlices } from "./event-loop.js";
import type { ListedRegion, RegionState, RegionStatus } from "./region.js";
import type { Block } from "./region-list.js";
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
  /** What changed after it may be in the page, or not. */
  readonly revision: bigint;
}

const defaultPageSize = 100;
const maxPageSize = 1000;

/**
 * The page that the query asks for of those in `blocks` that `isVisible` lets through. Rejects with INVALID_ARGUMENT.
 * It takes as many turns of the event loop as it needs.
 */
export async function pageOf(
  blocks: readonly Block<ListedRegion>[],
  query: RegionQuery,
  isVisible: (region: ListedRegion) => boolean,
): Promise<Pick<RegionPage, "regions" | "nextPageToken">> {
  const { pageSize = defaultPageSize, pageToken = "" } = query;
  if (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > maxPageSize) {
    throw new RegistryError(
      "INVALID_ARGUMENT",
      `page_size must be from 1 to ${maxPageSize}, got ${pageSize}`,
    );
  }
  const after = pageToken === "" ? "" : nameIn(pageToken);
  const regions: RegionStatus[] = [];
  let nextPageToken = "";
  await inSlices(blocks, ({ regions: sorted }) => {
    if (compareRegionNames((sorted.at(-1) as ListedRegion).name, after) <= 0) return true;
    for (const region of sorted) {
      if (compareRegionNames(region.name, after) <= 0) continue;
      if (!matches(region, query) || !isVisible(region)) continue;
      if (regions.length === pageSize) {
        nextPageToken = tokenAfter(regions[pageSize - 1] as RegionStatus);
        return false;
      }
      regions.push(region.status);
    }
    return true;
  });
  return { regions, nextPageToken };
}

function matches(region: ListedRegion, { owner, device, state, labelPrefix }: RegionQuery): boolean {
  if (region.state === "gone") return false;
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
