import { RegistryError } from "../../core/errors.js";
import type {
  ChangeReason,
  RegionState,
  RegionStatus,
  RegisterRequest,
  RegistryChange,
} from "../../core/region.js";
import type { RegionQuery } from "../../core/region-query.js";
import { handleFromWire } from "../convert.js";
import * as wire from "../gen/cudashm/v1/registry.js";
import { durationFromWire, durationToWire } from "./durations.js";

const states = {
  registering: wire.RegionState.REGION_STATE_REGISTERING,
  ready: wire.RegionState.REGION_STATE_READY,
  orphaned: wire.RegionState.REGION_STATE_ORPHANED,
  draining: wire.RegionState.REGION_STATE_DRAINING,
  close_failed: wire.RegionState.REGION_STATE_CLOSE_FAILED,
} as const satisfies Record<RegionState, wire.RegionState>;

/** Why a region is as it is, in the words of the wire. */
export const reasons = {
  requested: wire.Reason.REASON_REQUESTED,
  lease_expired: wire.Reason.REASON_LEASE_EXPIRED,
  session_ended: wire.Reason.REASON_SESSION_ENDED,
  exporter_exited: wire.Reason.REASON_EXPORTER_EXITED,
  replaced: wire.Reason.REASON_REPLACED,
  forced: wire.Reason.REASON_FORCED,
  adopted: wire.Reason.REASON_ADOPTED,
  stopping: wire.Reason.REASON_STOPPING,
} as const satisfies Record<ChangeReason, wire.Reason>;

/** What became of a region, in the words of the wire. */
export const changeKinds = {
  registered: wire.ChangeKind.CHANGE_KIND_REGISTERED,
  adopted: wire.ChangeKind.CHANGE_KIND_ADOPTED,
  orphaned: wire.ChangeKind.CHANGE_KIND_ORPHANED,
  draining: wire.ChangeKind.CHANGE_KIND_DRAINING,
  unregistered: wire.ChangeKind.CHANGE_KIND_UNREGISTERED,
  close_failed: wire.ChangeKind.CHANGE_KIND_CLOSE_FAILED,
} as const satisfies Record<RegistryChange["kind"], wire.ChangeKind>;

/** Everything that is told of a region. */
export function regionToWire(region: RegionStatus): wire.Region {
  const { exporter, leaseMs } = region;
  return {
    name: region.name,
    kind: "cuda",
    state: states[region.state],
    reason: reasons[region.reason],
    deviceId: BigInt(region.deviceId),
    deviceUuid: region.deviceUuid,
    byteSize: region.byteSize,
    offset: region.offset,
    allocationByteSize: region.allocationByteSize,
    owner: region.owner,
    session: region.session ?? "",
    protocol: region.protocol,
    registeredAt: timeToWire(region.registeredAt),
    lastUsedAt: timeToWire(region.lastUsedAt),
    lease: leaseMs === null ? undefined : durationToWire(leaseMs),
    leaseExpiresAt: timeToWire(region.leaseExpiresAt),
    pins: BigInt(region.pins),
    generation: region.generation,
    fingerprint: region.handle.fingerprint,
    labels: new Map(region.labels),
    exporter: exporter === null ? undefined : { ...exporter },
    verified: region.isVerified,
  };
}

/** Throws INVALID_ARGUMENT for what the registry could not be asked. */
export function registerRequestFromWire(message: wire.RegisterRequest): RegisterRequest {
  const { name, rawHandle } = message;
  return {
    name,
    handle: handleFromWire(name, rawHandle),
    deviceId: message.deviceId,
    deviceUuid: textFromWire(message.deviceUuid),
    byteSize: message.byteSize,
    offset: message.offset,
    leaseMs: durationFromWire("lease", message.lease),
    exporter: message.exporter,
    labels: message.labels,
    isIdempotent: true,
    replaces: message.replaceGeneration,
    isDryRun: message.dryRun,
  };
}

/** Throws INVALID_ARGUMENT for a state that there is none of. */
export function queryFromWire(message: wire.ListRequest): RegionQuery {
  const { pageSize } = message;
  return {
    owner: textFromWire(message.owner),
    device: textFromWire(message.device),
    state: stateFromWire(message.state),
    labelPrefix: textFromWire(message.labelPrefix),
    pageSize: pageSize === 0 ? undefined : pageSize,
    pageToken: textFromWire(message.pageToken),
  };
}

/** A text; undefined where it is empty, which says as little as leaving it out. */
export function textFromWire(text: string): string | undefined {
  return text === "" ? undefined : text;
}

function stateFromWire(state: wire.RegionState): RegionState | undefined {
  if (state === wire.RegionState.REGION_STATE_UNSPECIFIED) return undefined;
  for (const [name, number] of Object.entries(states)) if (number === state) return name as RegionState;
  throw new RegistryError(
    "INVALID_ARGUMENT",
    `state ${state} is none; there are ${Object.keys(states).join(", ")}`,
  );
}

function timeToWire(at: number | null): Date | undefined {
  return at === null ? undefined : new Date(at);
}
