import type { ChangeReason, Protocol, RegionState, RegistryChange } from "../../core/region.js";

/** The words of the core that are sent as they are. */
export const regionStates = [
  "registering",
  "ready",
  "orphaned",
  "draining",
  "close_failed",
] as const satisfies readonly RegionState[];

export const changeReasons = [
  "requested",
  "lease_expired",
  "session_ended",
  "exporter_exited",
  "replaced",
  "forced",
  "adopted",
  "stopping",
] as const satisfies readonly ChangeReason[];

export const protocols = ["http", "grpc", "library"] as const satisfies readonly Protocol[];

export const changeKinds = [
  "registered",
  "adopted",
  "orphaned",
  "draining",
  "unregistered",
  "close_failed",
] as const satisfies readonly RegistryChange["kind"][];
