import type { Exporter } from "./exporter.js";
import type { IpcMemHandle } from "./handle.js";
import type { Labels, Protocol } from "./region.js";

/** What of a session outlives the process: its secret only as a hash. */
export interface SessionRecord {
  readonly id: string;
  /** SHA-256 of the secret, in hex. */
  readonly secretDigest: string;
  readonly owner: string;
  readonly resumeGraceMs: number;
}

/** What it takes to open a region again after a restart. It holds the handle, so it is as secret as that. */
export interface RegionRecord {
  readonly generation: bigint;
  readonly name: string;
  readonly handle: IpcMemHandle;
  /** The device then; its number may be another now. */
  readonly deviceId: number;
  readonly deviceUuid: string;
  readonly byteSize: bigint;
  /** Bytes from the start of the allocation. */
  readonly offset: bigint;
  readonly owner: string;
  readonly session: SessionRecord | null;
  readonly protocol: Protocol;
  /** Milliseconds since the epoch. */
  readonly registeredAt: number;
  readonly leaseMs: number | null;
  readonly exporter: Exporter | null;
  readonly labels: Labels;
}

/** Where the registry writes down what must survive it. Both resolve once that is durable. */
export interface RegionJournal {
  /**
   * Takes down a region, in place of the one with the same generation and of the one that it `replaces`. Rejects
   * with UNAVAILABLE if it could not; then it will not be there after a restart.
   */
  registered(record: RegionRecord, replaces?: bigint): Promise<void>;
  /** The region is about to go and must not come back. Rejects with UNAVAILABLE; then it is still taken down. */
  left(generation: bigint): Promise<void>;
}
