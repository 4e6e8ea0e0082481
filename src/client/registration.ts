import type { Exporter } from "./region.js";
import { digitsOf, objectOf, rawHandleOf, secondsOf } from "./write-json.js";

/** GPU memory to be registered under a name, and how long it is to stay so. */
export interface FullRegistration {
  /** The 64 bytes of a `cudaIpcMemHandle_t`, as they are or in base64. */
  readonly rawHandle: Uint8Array | string;
  /** The service's ordinal of the device. One of this and `deviceUuid` has to be given; if both are, they must agree. */
  readonly deviceId?: bigint | number | undefined;
  readonly deviceUuid?: string | undefined;
  /** Bytes of the region, at least 1. */
  readonly byteSize: bigint | number;
  /** Bytes from the start of the allocation to the region's; 0 if left out. */
  readonly offset?: bigint | number | undefined;
  /** Unregistered after so long, 1 second to 7 days, unless it is renewed; stays if left out. */
  readonly leaseMs?: number | undefined;
  /** The process whose end ends the region; checked, and then watched. */
  readonly exporter?: Exporter | undefined;
  /** At most 32. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Takes the place of the region of that name, which must have this generation. */
  readonly replaceGeneration?: bigint | number | undefined;
  /** Opens and closes the memory, tells how large its allocation is, and registers nothing. */
  readonly dryRun?: boolean | undefined;
}

/** The body that registers. Throws INVALID_ARGUMENT for numbers that are not exact. */
export function encodeFullRegistration(registration: FullRegistration): string {
  const { deviceId, deviceUuid, byteSize, offset, leaseMs, exporter, labels } = registration;
  const { rawHandle, replaceGeneration, dryRun } = registration;
  return objectOf({
    raw_handle: rawHandleOf(rawHandle),
    device_id: deviceId === undefined ? undefined : digitsOf("deviceId", deviceId),
    device_uuid: JSON.stringify(deviceUuid),
    byte_size: digitsOf("byteSize", byteSize),
    offset: offset === undefined ? undefined : digitsOf("offset", offset),
    lease_seconds: leaseMs === undefined ? undefined : secondsOf("leaseMs", leaseMs),
    exporter: exporter === undefined ? undefined : encodeExporter(exporter),
    labels: JSON.stringify(labels),
    replace_generation:
      replaceGeneration === undefined ? undefined : digitsOf("replaceGeneration", replaceGeneration),
    dry_run: JSON.stringify(dryRun),
  });
}

function encodeExporter({ pid, startTime, bootId, pidNamespace }: Exporter): string {
  return objectOf({
    pid: digitsOf("exporter.pid", pid),
    start_time: digitsOf("exporter.startTime", startTime),
    boot_id: JSON.stringify(bootId),
    pid_namespace: digitsOf("exporter.pidNamespace", pidNamespace),
  });
}
