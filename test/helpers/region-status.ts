import { IpcMemHandle } from "../../src/core/handle.js";
import type { RegionStatus } from "../../src/core/region.js";

/** A region that is ready, but for what `fields` say. */
export function regionStatus(fields: Partial<RegionStatus> = {}): RegionStatus {
  return {
    name: "r",
    deviceId: 0,
    deviceUuid: "GPU-00000000-0000-0000-0000-000000000000",
    byteSize: 64n,
    offset: 0n,
    allocationByteSize: 64n,
    state: "ready",
    reason: "requested",
    generation: 1n,
    owner: "anonymous",
    session: null,
    protocol: "http",
    registeredAt: 0,
    lastUsedAt: null,
    leaseMs: null,
    leaseExpiresAt: null,
    pins: 0,
    labels: new Map(),
    exporter: null,
    isVerified: true,
    handle: new IpcMemHandle(new Uint8Array(64)),
    ...fields,
  };
}
