import { decoded, jsonBody } from "./answers.js";
import type { CallOptions } from "./call-options.js";
import type { Connection } from "./connection.js";
import { type EventsOptions, type RegistryEvent, watchEvents } from "./events.js";
import { type KeepAliveOptions, keepAlive } from "./keep-alive.js";
import { query } from "./query.js";
import { count, list, membersOf, parseExact, text, whole, yesOrNo } from "./read-json.js";
import { decodeRegion, type Region, type RegionState, readRegion } from "./region.js";
import { regionSegment, registerSegment } from "./region-path.js";
import { type RegionWindow, windowQuery } from "./region-window.js";
import { encodeFullRegistration, type FullRegistration } from "./registration.js";
import { type Device, decodeDevices, decodeServerState, type ServerState } from "./server-state.js";
import { linkSignals } from "./signals.js";
import { digitsOf, objectOf, secondsOf } from "./write-json.js";

/** Which regions to list: those that match all that is given. */
export interface RegionFilter {
  readonly owner?: string | undefined;
  /** Ordinal or UUID. */
  readonly device?: number | string | undefined;
  readonly state?: RegionState | undefined;
  /** Matches a region of which some label, written `key=value`, begins so. */
  readonly labelPrefix?: string | undefined;
  /** Regions in one answer: 1 to 1000; 100 if left out. */
  readonly pageSize?: number | undefined;
}

/** Part of a list. */
export interface RegionPage {
  readonly regions: readonly Region[];
  /** Where the next page begins; null at the end. */
  readonly nextPageToken: string | null;
  readonly revision: bigint;
}

export interface RenewOptions extends CallOptions {
  /** The lease from now on; as long as it was if left out. */
  readonly leaseMs?: number | undefined;
  /** FAILED_PRECONDITION if the region has another. */
  readonly generation?: bigint | number | undefined;
}

export interface UnregisterOptions extends CallOptions {
  /** How long to wait for the memory to be closed, up to 5 minutes; not at all if left out. */
  readonly waitMs?: number | undefined;
  /** Takes the region, after the wait, from whoever uses it: for its owner and administrators. */
  readonly force?: boolean | undefined;
  /** FAILED_PRECONDITION if the region has another. */
  readonly generation?: bigint | number | undefined;
}

export interface Unregistered {
  /**
   * Whether the memory is closed and can be freed. If not, it will be when the last user lets go or, if there is none,
   * when the other regions on the same allocation are unregistered.
   */
  readonly closed: boolean;
  /** How many still use it. */
  readonly pins: number;
}

export interface Checksum {
  /** CRC-32C (Castagnoli). */
  readonly crc32c: number;
  /** Bytes that were read for it. */
  readonly byteSize: bigint;
}

/** What Triton's API has no words for. */
export interface RegistryClient {
  /** What the service is, and which run of it. */
  server(options?: CallOptions): Promise<ServerState>;
  devices(options?: CallOptions): Promise<readonly Device[]>;
  /** All that there is to know of one region; NOT_FOUND if there is none of this name. */
  region(name: string, options?: CallOptions): Promise<Region>;
  /** The same as soon as there is a ready one; DEADLINE_EXCEEDED after `waitMs`, up to 5 minutes. */
  waitFor(name: string, options: CallOptions & { readonly waitMs: number }): Promise<Region>;
  /** Every region that matches, sorted by the bytes of the names, asked for page by page. */
  regions(options?: RegionFilter & CallOptions): AsyncGenerator<Region, void>;
  /** One page, from `pageToken` on. */
  regionPage(
    options?: RegionFilter & CallOptions & { readonly pageToken?: string | undefined },
  ): Promise<RegionPage>;
  /** Registers a region, with all that can be said of it. The same again by the same owner is no error. */
  registerRegion(name: string, registration: FullRegistration, options?: CallOptions): Promise<Region>;
  /** Starts the lease of a region anew; FAILED_PRECONDITION if it has none. */
  renew(name: string, options?: RenewOptions): Promise<Region>;
  /**
   * Renews at once, and then whenever a third of the lease has passed, until its signal or the client's is aborted:
   * then it resolves. Rejects when the service refuses, NOT_FOUND once the region is gone; what may pass, such as
   * no answer, is told to `onError` and tried again. Node does not exit while it goes on.
   */
  keepAlive(name: string, options: KeepAliveOptions): Promise<void>;
  /**
   * Unregisters a region and refuses it to new users. With `waitMs` it resolves when the memory is closed, so that
   * the exporter may free it; DEADLINE_EXCEEDED if somebody still uses it then. NOT_FOUND if there is none.
   */
  unregisterRegion(name: string, options?: UnregisterOptions): Promise<Unregistered>;
  /** The checksum of a region's bytes, which stay where they are. PERMISSION_DENIED without --allow-contents. */
  checksum(name: string, window?: RegionWindow, options?: CallOptions): Promise<Checksum>;
  /**
   * Every change from now or from a revision on, after a first `hello`. It never returns: it throws an
   * EventsEndedError, whose `lastEventId` is what the next watch goes on `after`.
   */
  events(options?: EventsOptions): AsyncGenerator<RegistryEvent, never>;
}

/** Calls of `/v1` over this connection; `clientSignal` is the connection's own. */
export function createRegistryClient(
  connection: Connection,
  clientSignal: AbortSignal | undefined,
): RegistryClient {
  function get<T>(path: string, signal: AbortSignal | undefined, decode: (json: string) => T): Promise<T> {
    return decoded(connection, { method: "GET", path, signal }, decode);
  }

  const client: RegistryClient = {
    async server({ signal } = {}) {
      return get("/v1", signal, decodeServerState);
    },

    async devices({ signal } = {}) {
      return get("/v1/devices", signal, decodeDevices);
    },

    async region(name, { signal } = {}) {
      return get(regionPath(name), signal, decodeRegion);
    },

    async waitFor(name, { waitMs, signal }) {
      return get(regionPath(name) + query({ wait: waitOf(waitMs) }), signal, decodeRegion);
    },

    async *regions(options = {}) {
      let pageToken: string | undefined;
      do {
        const page = await client.regionPage({ ...options, pageToken });
        yield* page.regions;
        pageToken = page.nextPageToken ?? undefined;
      } while (pageToken !== undefined);
    },

    async regionPage({ owner, device, state, labelPrefix, pageSize, pageToken, signal } = {}) {
      const filter = {
        owner,
        device: device === undefined ? undefined : String(device),
        state,
        label_prefix: labelPrefix,
        page_size: pageSize === undefined ? undefined : digitsOf("pageSize", pageSize),
        page_token: pageToken,
      };
      return get(`/v1/regions${query(filter)}`, signal, decodePage);
    },

    async registerRegion(name, registration, { signal } = {}) {
      const path = `/v1/regions/${registerSegment(name)}`;
      const body = jsonBody(encodeFullRegistration(registration));
      return decoded(connection, { method: "PUT", path, signal, body }, decodeRegion);
    },

    async renew(name, { leaseMs, generation, signal } = {}) {
      const path = `${regionPath(name)}/renew`;
      const body = jsonBody(
        objectOf({
          lease_seconds: leaseMs === undefined ? undefined : secondsOf("leaseMs", leaseMs),
          generation: generation === undefined ? undefined : digitsOf("generation", generation),
        }),
      );
      return decoded(connection, { method: "POST", path, signal, body }, decodeRegion);
    },

    async keepAlive(name, options) {
      const { signal, unlink } = linkSignals([options.signal, clientSignal]);
      try {
        await keepAlive((renewal) => client.renew(name, renewal), { ...options, signal });
      } finally {
        unlink();
      }
    },

    async unregisterRegion(name, { waitMs, force, generation, signal } = {}) {
      const how = {
        wait: waitMs === undefined ? undefined : waitOf(waitMs),
        force: force === undefined ? undefined : String(force),
        generation: generation === undefined ? undefined : digitsOf("generation", generation),
      };
      const path = regionPath(name) + query(how);
      return decoded(connection, { method: "DELETE", path, signal }, decodeUnregistered);
    },

    async checksum(name, window = {}, { signal } = {}) {
      return get(`${regionPath(name)}/checksum${windowQuery(window)}`, signal, decodeChecksum);
    },

    events(options = {}) {
      return watchEvents(connection, options);
    },
  };
  return client;
}

function regionPath(name: string): string {
  return `/v1/regions/${regionSegment(name)}`;
}

function waitOf(waitMs: number): string {
  return `${digitsOf("waitMs", waitMs)}ms`;
}

function decodePage(json: string): RegionPage {
  const members = membersOf(parseExact(json));
  return {
    regions: list(members, "regions", readRegion),
    nextPageToken: text(members, "next_page_token") || null,
    revision: whole(members, "revision"),
  };
}

function decodeUnregistered(json: string): Unregistered {
  const members = membersOf(parseExact(json));
  return { closed: yesOrNo(members, "closed"), pins: count(members, "pins") };
}

function decodeChecksum(json: string): Checksum {
  const members = membersOf(parseExact(json));
  const digits = text(members, "crc32c");
  if (!/^[0-9a-f]{8}$/.test(digits)) throw new TypeError("crc32c is no checksum");
  return { crc32c: Number.parseInt(digits, 16), byteSize: whole(members, "byte_size") };
}
