import {
  count,
  type Members,
  membersOf,
  milliseconds,
  orNull,
  parseExact,
  text,
  time,
  whole,
  yesOrNo,
} from "./read-json.js";

/**
 * `registering`: being opened, shown by a dry run alone. `orphaned`: its exporter has exited. `draining`:
 * unregistered, waits for whoever uses it. `close_failed`: the driver refused the close, unregister it again.
 */
export type RegionState = "registering" | "ready" | "orphaned" | "draining" | "close_failed";

/** Why a region is as it is. */
export type ChangeReason =
  | "requested"
  | "lease_expired"
  | "session_ended"
  | "exporter_exited"
  | "replaced"
  | "forced"
  | "adopted"
  | "stopping";

/** The process that owns the memory. */
export interface Exporter {
  readonly pid: number;
  /** Clock ticks from the boot to its start: field 22 of `/proc/<pid>/stat`. */
  readonly startTime: bigint;
  /** `/proc/sys/kernel/random/boot_id` */
  readonly bootId: string;
  /** Inode of `/proc/<pid>/ns/pid`. */
  readonly pidNamespace: bigint;
}

/** Everything that the service tells of a region. */
export interface Region {
  readonly name: string;
  readonly kind: "cuda";
  readonly state: RegionState;
  /** Why it is in that state. */
  readonly reason: ChangeReason;
  readonly deviceId: number;
  readonly deviceUuid: string;
  readonly byteSize: bigint;
  /** Bytes from the start of the allocation. */
  readonly offset: bigint;
  /** Bytes of the whole allocation. */
  readonly allocationByteSize: bigint;
  /** `anonymous`, a token's name, or `session:` and an id. */
  readonly owner: string;
  /** Id of the session that it lives as long as. */
  readonly session: string | null;
  readonly protocol: "http" | "grpc" | "library";
  readonly registeredAt: Date;
  /** When its contents were last used; null if never. */
  readonly lastUsedAt: Date | null;
  /** null if it has no lease. */
  readonly leaseMs: number | null;
  readonly leaseExpiresAt: Date | null;
  /** How many use it at this moment. */
  readonly pins: number;
  /** Number of this registration: the name's next one has another. */
  readonly generation: bigint;
  /** Equal for regions on the same allocation. */
  readonly fingerprint: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly exporter: Exporter | null;
  /** False if it was taken up after a restart without proof that its exporter lives. */
  readonly isVerified: boolean;
}

/** A region in an answer. Throws if it is none. */
export function decodeRegion(json: string): Region {
  return readRegion(parseExact(json));
}

/** The same, out of JSON that was parsed with every number as a string. */
export function readRegion(value: unknown): Region {
  const members = membersOf(value);
  return {
    name: text(members, "name"),
    kind: text(members, "kind") as "cuda",
    state: text(members, "state") as RegionState,
    reason: text(members, "reason") as ChangeReason,
    deviceId: count(members, "device_id"),
    deviceUuid: text(members, "device_uuid"),
    byteSize: whole(members, "byte_size"),
    offset: whole(members, "offset"),
    allocationByteSize: whole(members, "allocation_byte_size"),
    owner: text(members, "owner"),
    session: orNull(members, "session", text),
    protocol: text(members, "protocol") as Region["protocol"],
    registeredAt: time(members, "registered_at"),
    lastUsedAt: orNull(members, "last_used_at", time),
    leaseMs: orNull(members, "lease_seconds", milliseconds),
    leaseExpiresAt: orNull(members, "lease_expires_at", time),
    pins: count(members, "pins"),
    generation: whole(members, "generation"),
    fingerprint: text(members, "fingerprint"),
    labels: labels(members),
    exporter: orNull(members, "exporter", exporter),
    isVerified: yesOrNo(members, "verified"),
  };
}

function labels(members: Members): Readonly<Record<string, string>> {
  const values = membersOf(members.labels);
  // Not by assignment: a label may be called __proto__.
  return Object.fromEntries(Object.keys(values).map((key) => [key, text(values, key)]));
}

function exporter(members: Members, name: string): Exporter {
  const values = membersOf(members[name]);
  return {
    pid: count(values, "pid"),
    startTime: whole(values, "start_time"),
    bootId: text(values, "boot_id"),
    pidNamespace: whole(values, "pid_namespace"),
  };
}
