import type { RegistryError } from "./errors.js";
import { invalidArguments } from "./refusals.js";
import type { Labels, RegisterRequest } from "./region.js";
import { regionNameProblem } from "./region-name.js";

const maxUint64 = 2n ** 64n - 1n;

/** Leases there can be, in milliseconds: a second to a week. */
const minLeaseMs = 1000;
const maxLeaseMs = 7 * 24 * 3600 * 1000;

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
