import { count, list, membersOf, orNull, parseExact, text, whole } from "./read-json.js";

/** A region of the run before that was not taken up again. */
export interface RefusedAdoption {
  readonly name: string;
  readonly generation: bigint;
  readonly reason: string;
}

/** What a service is, which run of it, and how far it is with the regions of the run before. */
export interface ServerState {
  readonly name: string;
  readonly version: string;
  /** Another one for each start of the service. */
  readonly instanceId: string;
  /** Grows by one with each start on one state file. */
  readonly epoch: bigint;
  /** Number of the last change. */
  readonly revision: bigint;
  readonly access: "shared" | "owner";
  readonly unregisterAll: "all" | "own" | "none";
  readonly adoption: {
    /** Regions of which it is not known yet. */
    readonly pending: number;
    readonly adopted: number;
    readonly refused: readonly RefusedAdoption[];
  };
}

/** A GPU, and what of it the service holds. */
export interface Device {
  readonly ordinal: number;
  readonly uuid: string;
  readonly pciBusId: string;
  readonly name: string;
  readonly totalBytes: bigint;
  /** null while the service holds nothing there: asking would take GPU memory itself. */
  readonly freeBytes: bigint | null;
  /** Bytes of the allocations mapped there, shared ones counted once. */
  readonly mappedBytes: bigint;
  readonly regions: number;
}

/** Throws if the answer is none. */
export function decodeServerState(json: string): ServerState {
  const members = membersOf(parseExact(json));
  const adoption = membersOf(members.adoption);
  return {
    name: text(members, "name"),
    version: text(members, "version"),
    instanceId: text(members, "instance_id"),
    epoch: whole(members, "epoch"),
    revision: whole(members, "revision"),
    access: text(members, "access") as ServerState["access"],
    unregisterAll: text(members, "unregister_all") as ServerState["unregisterAll"],
    adoption: {
      pending: count(adoption, "pending"),
      adopted: count(adoption, "adopted"),
      refused: list(adoption, "refused", readRefusal),
    },
  };
}

/** Throws if the answer has no list of devices. */
export function decodeDevices(json: string): readonly Device[] {
  return list(membersOf(parseExact(json)), "devices", readDevice);
}

function readRefusal(value: unknown): RefusedAdoption {
  const members = membersOf(value);
  return {
    name: text(members, "name"),
    generation: whole(members, "generation"),
    reason: text(members, "reason"),
  };
}

function readDevice(value: unknown): Device {
  const members = membersOf(value);
  return {
    ordinal: count(members, "ordinal"),
    uuid: text(members, "uuid"),
    pciBusId: text(members, "pci_bus_id"),
    name: text(members, "name"),
    totalBytes: whole(members, "total_bytes"),
    freeBytes: orNull(members, "free_bytes", whole),
    mappedBytes: whole(members, "mapped_bytes"),
    regions: count(members, "regions"),
  };
}
