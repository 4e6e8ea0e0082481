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
  /** Aborted when the client is gone, its deadline passed, or the service stops. */
  readonly signal?: AbortSignal;
}

export interface RegisterRequest {
  readonly name: string;
  readonly handle: IpcMemHandle;
  /** As the client sent it; the registry checks it against the devices there are. */
  readonly deviceId: bigint;
  /** Size of the region in bytes, from the start of the allocation. */
  readonly byteSize: bigint;
}

/**
 * `registering` is never visible on Triton's surface. `draining`: unregistered, waits for its last pin.
 * `close_failed`: the driver refused the close; the name stays taken and the next unregister tries again.
 */
export type RegionState = "registering" | "ready" | "draining" | "close_failed";

/** What can be told about a region. A snapshot: it does not change. */
export interface RegionStatus {
  readonly name: string;
  readonly deviceId: number;
  /** Bytes, as registered. */
  readonly byteSize: bigint;
  /** Bytes of the whole allocation, as the driver reports. */
  readonly allocationByteSize: bigint;
  readonly state: RegionState;
  /** Number of this registration: never used twice by one registry, so a name's next life has another. */
  readonly generation: bigint;
  readonly owner: string;
  readonly protocol: Protocol;
  /** Milliseconds since the epoch. */
  readonly registeredAt: number;
  readonly pins: number;
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
  /** Lets go; the second time does nothing. */
  release(): void;
}

/** A change of the registry, as its observers see it, after the driver did its part. */
export interface RegistryChange {
  readonly kind: "registered" | "draining" | "unregistered" | "close_failed";
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
