import type { RegistryError } from "./errors.js";
import type { Exporter } from "./exporter.js";
import { invalidArguments } from "./refusals.js";
import type { Labels, RegisterRequest } from "./region.js";
import { regionNameProblem } from "./region-name.js";

const maxUint64 = 2n ** 64n - 1n;

/** Leases there can be, in milliseconds: a second to a week. */
const minLeaseMs = 1000;
const maxLeaseMs = 7 * 24 * 3600 * 1000;

/** As Linux has it. */
const maxPid = 2 ** 22;
const bootId = /^[\w-]{1,64}$/;

const maxLabels = 32;
const labelKey = /^[A-Za-z0-9._/-]{1,63}$/;
const maxLabelValueBytes = 255;
// biome-ignore lint/suspicious/noControlCharactersInRegex: refusing them is the point.
const controlCharacter = /[\u0000-\u001f\u007f-\u009f]/;

/** Refuses what of a register is wrong whatever the driver says; null if nothing is. */
export function registerProblem(request: RegisterRequest): RegistryError | null {
  const problem =
    sizeProblem(request) ??
    deviceProblem(request) ??
    leaseProblem(request.leaseMs) ??
    exporterProblem(request.exporter) ??
    labelsProblem(request.labels);
  return problem === null ? null : invalidArguments(request.name, problem);
}

/** Refuses a name that no region can have; null if one can. */
export function nameProblem(name: string): RegistryError | null {
  const problem = regionNameProblem(name);
  return problem === null ? null : invalidArguments(name, problem);
}

/** What is wrong with a lease of so many milliseconds; null if nothing is. */
export function leaseProblem(leaseMs: number | undefined): string | null {
  if (leaseMs === undefined || (leaseMs >= minLeaseMs && leaseMs <= maxLeaseMs)) return null;
  return `a lease lasts ${minLeaseMs / 1000} to ${maxLeaseMs / 1000} seconds, got ${leaseMs / 1000}`;
}

function sizeProblem({ byteSize, offset = 0n }: RegisterRequest): string | null {
  if (byteSize < 1n) return "byte_size must be at least 1";
  if (byteSize > maxUint64) return `byte_size ${byteSize} is over ${maxUint64}, the most there can be`;
  if (offset < 0n || offset > maxUint64) return `offset must be from 0 to ${maxUint64}, got ${offset}`;
  return null;
}

function deviceProblem({ deviceId, deviceUuid }: RegisterRequest): string | null {
  return deviceId === undefined && deviceUuid === undefined
    ? "say on which device the memory is, by device_id or by device_uuid"
    : null;
}

/** What no process can be. Whether there is such a one is for the watch to say. */
function exporterProblem(exporter: Exporter | undefined): string | null {
  if (exporter === undefined) return null;
  const { pid, startTime, pidNamespace } = exporter;
  if (!(Number.isInteger(pid) && pid >= 1 && pid <= maxPid)) {
    return `the exporter's pid must be from 1 to ${maxPid}, got ${pid}`;
  }
  if (!isPositiveUint64(startTime)) {
    return "the exporter's start_time is missing: it is field 22 of /proc/<pid>/stat";
  }
  if (!bootId.test(exporter.bootId)) {
    return "the exporter's boot_id is missing or none: it is the text of /proc/sys/kernel/random/boot_id";
  }
  if (!isPositiveUint64(pidNamespace)) {
    return "the exporter's pid_namespace is missing: it is the inode of /proc/<pid>/ns/pid";
  }
  return null;
}

function isPositiveUint64(value: bigint): boolean {
  return value >= 1n && value <= maxUint64;
}

function labelsProblem(labels: Labels | undefined): string | null {
  if (labels === undefined) return null;
  if (labels.size > maxLabels) return `${labels.size} labels are too many, at most ${maxLabels} are allowed`;
  for (const [key, value] of labels) {
    if (!labelKey.test(key)) {
      return "a label's key has 1 to 63 letters, digits, dots, dashes, underscores and slashes";
    }
    if (
      !value.isWellFormed() ||
      controlCharacter.test(value) ||
      Buffer.byteLength(value) > maxLabelValueBytes
    ) {
      return `the value of label ${key} must be at most ${maxLabelValueBytes} bytes of text without control characters`;
    }
  }
  return null;
}
