import type { FaceClient } from "./face-client.js";

/** A refusal as a client is told it, over whichever face. */
export class FaceRefusal extends Error {
  override readonly name = "FaceRefusal";
  /** In gRPC's words. */
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

// What follows has the wire's names, which both faces share. Numbers of 64 bits are bigints, times and durations are
// milliseconds, and what there is none of is null. Members that a face adds of its own stay, so that they are noticed.

export interface ExporterView {
  readonly pid: bigint;
  readonly start_time: bigint;
  readonly boot_id: string;
  readonly pid_namespace: bigint;
}

export interface RegionView {
  readonly name: string;
  readonly kind: string;
  readonly state: string;
  readonly reason: string;
  readonly device_id: bigint;
  readonly device_uuid: string;
  readonly byte_size: bigint;
  readonly offset: bigint;
  readonly allocation_byte_size: bigint;
  readonly owner: string;
  readonly session: string | null;
  readonly protocol: string;
  readonly registered_at: number;
  readonly last_used_at: number | null;
  readonly lease_ms: number | null;
  readonly lease_expires_at: number | null;
  readonly pins: bigint;
  readonly generation: bigint;
  readonly fingerprint: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly exporter: ExporterView | null;
  readonly verified: boolean;
}

interface PageView {
  readonly regions: readonly RegionView[];
  readonly next_page_token: string;
  readonly revision: bigint;
}

export interface DeviceView {
  readonly ordinal: bigint;
  readonly uuid: string;
  readonly pci_bus_id: string;
  readonly name: string;
  readonly total_bytes: bigint;
  readonly free_bytes: bigint | null;
  readonly mapped_bytes: bigint;
  readonly regions: bigint;
}

interface ServerView {
  readonly name: string;
  readonly version: string;
  readonly instance_id: string;
  readonly epoch: bigint;
  readonly revision: bigint;
  readonly access: string;
  readonly unregister_all: string;
  readonly adoption: {
    readonly pending: bigint;
    readonly adopted: bigint;
    readonly refused: readonly {
      readonly name: string;
      readonly generation: bigint;
      readonly reason: string;
    }[];
  };
}

export interface ListQuery {
  readonly owner?: string;
  readonly device?: string;
  readonly state?: string;
  readonly label_prefix?: string;
  readonly page_size?: bigint;
  readonly page_token?: string;
}

export interface RegistrationFields {
  readonly raw_handle: Uint8Array;
  readonly byte_size: bigint;
  readonly device_id?: bigint;
  readonly device_uuid?: string;
  readonly offset?: bigint;
  readonly lease_ms?: number;
  readonly exporter?: Partial<ExporterView>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly replace_generation?: bigint;
  readonly dry_run?: boolean;
}

interface RenewFields {
  readonly lease_ms?: number;
  readonly generation?: bigint;
}

interface UnregisterFields {
  readonly wait_ms?: number;
  readonly force?: boolean;
  readonly generation?: bigint;
}

export interface ContentsRange {
  readonly offset?: bigint;
  readonly byte_size?: bigint;
}

interface WatchQuery {
  readonly from_revision?: bigint;
  readonly name?: string;
}

export type EventView =
  | { readonly gap: { readonly from: bigint; readonly to: bigint } }
  | {
      readonly change: {
        readonly kind: string;
        readonly reason: string;
        readonly revision: bigint;
        readonly region: RegionView;
      };
    };

/** A watch that has begun. */
export interface Watching extends Disposable {
  readonly start: { readonly instance_id: string; readonly epoch: bigint; readonly revision: bigint };
  /** The next events. Rejects with the refusal that the watch ends with before there are so many. */
  take(count: number): Promise<EventView[]>;
}

/** A write that has begun and pins its region until it is finished. */
export interface Upload {
  /** Sends these bytes as the last ones. Rejects with the refusal. */
  finish(bytes: Uint8Array): Promise<void>;
}

/** One door to everything that Triton's API has no words for. Every call rejects with a {@link FaceRefusal}. */
export interface RegistryFaceClient {
  readonly protocol: "http" | "grpc";
  /** Triton's calls through the same door, by the same caller. */
  readonly triton: FaceClient;
  server(): Promise<ServerView>;
  devices(): Promise<readonly DeviceView[]>;
  get(name: string, waitMs?: number): Promise<RegionView>;
  list(query?: ListQuery): Promise<PageView>;
  register(name: string, registration: RegistrationFields): Promise<RegionView>;
  renew(name: string, renewal?: RenewFields): Promise<RegionView>;
  unregister(
    name: string,
    options?: UnregisterFields,
  ): Promise<{ readonly closed: boolean; readonly pins: bigint }>;
  watch(query?: WatchQuery): Promise<Watching>;
  readContents(name: string, range?: ContentsRange): Promise<Buffer>;
  writeContents(name: string, bytes: Uint8Array, range?: ContentsRange): Promise<void>;
  /** Begins a write and sends none of its bytes yet. */
  beginWrite(name: string): Upload;
  checksum(
    name: string,
    range?: ContentsRange,
  ): Promise<{ readonly crc32c: number; readonly byte_size: bigint }>;
  close(): void;
}

/** The next `count` of `events`. */
export async function take(events: AsyncIterator<EventView, void>, count: number): Promise<EventView[]> {
  const taken: EventView[] = [];
  while (taken.length < count) {
    const { done, value } = await events.next();
    if (done === true) throw new Error(`the watch ended after ${taken.length} of ${count} events`);
    taken.push(value as EventView);
  }
  return taken;
}
