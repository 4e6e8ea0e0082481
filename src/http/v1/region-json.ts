import type { Exporter } from "../../core/exporter.js";
import type { RegionStatus } from "../../core/region.js";

/** Something that `stringify` writes as JSON; it keeps every digit of a bigint. */
export type Json = Readonly<Record<string, unknown>>;

/** Everything that is told of a region. What there is none of is null. */
export function regionJson(region: RegionStatus): Json {
  return {
    name: region.name,
    kind: "cuda",
    state: region.state,
    reason: region.reason,
    device_id: region.deviceId,
    device_uuid: region.deviceUuid,
    byte_size: region.byteSize,
    offset: region.offset,
    allocation_byte_size: region.allocationByteSize,
    owner: region.owner,
    session: region.session,
    protocol: region.protocol,
    registered_at: timeJson(region.registeredAt),
    last_used_at: timeJson(region.lastUsedAt),
    lease_seconds: region.leaseMs === null ? null : region.leaseMs / 1000,
    lease_expires_at: timeJson(region.leaseExpiresAt),
    pins: region.pins,
    generation: region.generation,
    fingerprint: region.handle.fingerprint,
    labels: Object.fromEntries(region.labels),
    exporter: exporterJson(region.exporter),
    verified: region.isVerified,
  };
}

function exporterJson(exporter: Exporter | null): Json | null {
  return (
    exporter && {
      pid: exporter.pid,
      start_time: exporter.startTime,
      boot_id: exporter.bootId,
      pid_namespace: exporter.pidNamespace,
    }
  );
}

/** RFC 3339 with milliseconds, in UTC. */
function timeJson(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
