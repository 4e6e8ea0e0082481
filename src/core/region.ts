import type { CallSignal } from "./abort.js";
import type { Exporter } from "./exporter.js";
import type { IpcMemHandle } from "./handle.js";

/** Which door a call came through. */
export type Protocol = "http" | "grpc" | "library";

/** The owner of what callers register of whom nothing is known. */
export const anonymous = "anonymous";

/** Who calls, how, and until when. Every call of the registry takes one. */
export interface CallContext {
  /** Who owns what the call registers. */
  readonly owner: string;
  readonly protocol: Protocol;
  /** Names the call in the log and in the answer. */
  readonly requestId: string;
  /** Whether it may do as it likes with regions of others. */
  readonly isAdmin?: boolean;
  /** The id of the session that the call belongs to. */
  readonly session?: string | null;
  /** Aborted when the client is gone, its deadline passed, or the service stops. */
  readonly signal?: CallSignal;
}

/** What a client wrote on a region, for itself and others to find it by. */
export type Labels = ReadonlyMap<string, string>;

export interface RegisterRequest {
  readonly name: string;
  readonly handle: IpcMemHandle;
  /** As the client sent it; the registry checks it against the devices there are. Or a `deviceUuid`, or both. */
  readonly deviceId?: bigint | undefined;
  readonly deviceUuid?: string | undefined;
  /** Size of the region in bytes. */
  readonly byteSize: bigint;
  /** Where the region begins, in bytes from the start of the allocation; 0 unless given. */
  readonly offset?: bigint | undefined;
  /** Milliseconds after which the region is unregistered unless it is renewed; for ever unless given. */
  readonly leaseMs?: number | undefined;
  /** The process whose end ends the region. */
  readonly exporter?: Exporter | undefined;
  readonly labels?: Labels | undefined;
  /** Whether the owner may register the same again, which then changes nothing. */
  readonly isIdempotent?: boolean | undefined;
  /** Generation of the region whose place this one takes. */
  readonly replaces?: bigint | undefined;
  /** Whether to open and close and tell how it went, and register nothing. */
  readonly isDryRun?: boolean | undefined;
}

/**
 * `registering` is never visible on Triton's surface. `orphaned`: its exporter has exited. `draining`:
 * unregistered, waits for its last pin. `close_failed`: the driver refused the close; the name stays taken and the
 * next unregister tries again.
 */
export type RegionState = "registering" | "ready" | "orphaned" | "draining" | "close_failed";

/** Why a region changed. */
export type ChangeReason =
  | "requested"
  | "lease_expired"
  | "session_ended"
  | "exporter_exited"
  | "replaced"
  | "forced"
  | "adopted"
  | "stopping";

/** What can be told about a region. A snapshot: it does not change. */
export interface RegionStatus {
  readonly name: string;
  readonly deviceId: number;
  readonly deviceUuid: string;
  /** Bytes, as registered. */
  readonly byteSize: bigint;
  /** Bytes from the start of the allocation to the start of the region. */
  readonly offset: bigint;
  /** Bytes of the whole allocation, as the driver reports. */
  readonly allocationByteSize: bigint;
  readonly state: RegionState;
  /** Why it is in that state. */
  readonly reason: ChangeReason;
  /** Number of this registration: never used twice by one registry, so a name's next life has another. */
  readonly generation: bigint;
  readonly owner: string;
  /** The id of the session that it lives as long as. */
  readonly session: string | null;
  readonly protocol: Protocol;
  /** Milliseconds since the epoch. */
  readonly registeredAt: number;
  /** When it was last pinned or let go of, in milliseconds since the epoch; null if never. */
  readonly lastUsedAt: number | null;
  /** Milliseconds; null if it has no lease. */
  readonly leaseMs: number | null;
  /** Milliseconds since the epoch. */
  readonly leaseExpiresAt: number | null;
  readonly pins: number;
  readonly labels: Labels;
  readonly exporter: Exporter | null;
  /** False if it was adopted from an earlier process without proof that its exporter still lives. */
  readonly isVerified: boolean;
  /** Prints as a fingerprint. */
  readonly handle: IpcMemHandle;
}

/** A region in the registry's list: not a snapshot, though only what is marked so ever changes. */
export interface ListedRegion {
  readonly name: string;
  readonly deviceId: number;
  readonly deviceUuid: string;
  /** Bytes, as registered. */
  readonly byteSize: bigint;
  readonly owner: string;
  readonly session: string | null;
  readonly labels: Labels;
  /** Milliseconds since the epoch. */
  readonly registeredAt: number | undefined;
  /** As it is now; `gone` if it was still there when the list was taken. */
  readonly state: RegionState | "gone";
  /** As they are now. */
  readonly pins: number;
  /** As it is now. */
  readonly status: RegionStatus;
}

/** Part of a region, in bytes from its start. */
export interface RegionWindow {
  readonly offset: bigint;
  readonly byteSize: bigint;
}

/** A consumer's hold on a window of a region: until it is released, the memory stays mapped. */
export interface RegionPin extends Disposable {
  readonly region: RegionStatus;
  /** Bytes of the pinned window. */
  readonly byteSize: bigint;
  /** Reads `into.byteLength` bytes at `offset` of the window. Throws OUT_OF_RANGE beyond it. */
  read(offset: bigint, into: Uint8Array): Promise<void>;
  /** Writes `from` at `offset` of the window. Throws OUT_OF_RANGE beyond it. */
  write(offset: bigint, from: Uint8Array): Promise<void>;
  /** CRC-32C of `byteSize` bytes at `offset` of the window, `seed` being that of those before. Throws OUT_OF_RANGE. */
  checksum(offset: bigint, byteSize: bigint, seed?: number): Promise<number>;
  /** Calls `run` if the region is taken from whoever holds it, unless the returned function was called before. */
  onRevoked(run: () => void): () => void;
  /** Lets go; the second time does nothing. */
  release(): void;
}

/** A change of the registry, as its observers see it, after the driver did its part. */
export interface RegistryChange {
  readonly kind: "registered" | "adopted" | "orphaned" | "draining" | "unregistered" | "close_failed";
  readonly reason: ChangeReason;
  readonly region: RegionStatus;
  /** The registry's revision after this change; it grows by one with each. */
  readonly revision: bigint;
  readonly context: CallContext;
  /** From the call that asked for it to the change, in milliseconds. */
  readonly durationMs: number;
  /** Why a close failed, or why a register was undone after it was told: what an observer refused it with. */
  readonly cause?: unknown;
}

/**
 * Told of every change, in order, before it is visible. A register whose observer rejects is undone and
 * fails; on the way out of a region a rejection is reported but cannot bring the memory back.
 */
export type RegistryObserver = (change: RegistryChange) => void | Promise<void>;
