import { describeRefusal, isStickyResult } from "./cuda-results.js";
import { type CudaDevice, DriverError } from "./driver.js";
import { type DriverRefusal, exitingText, internalErrorText, RegistryError } from "./errors.js";
import { compareRegionNames, quoteRegionName } from "./region-name.js";

/** gRPC carries an error's text in a header of limited size, percent-encoded. */
const maxNamedRegions = 16;
const maxNamedBytes = 2048;

/** A region that could not be closed, and why. */
export interface FailedRegion {
  readonly name: string;
  readonly error: unknown;
}

/** Refuses the arguments of a register. */
export function invalidArguments(name: string, problem: string, driver?: DriverRefusal): RegistryError {
  return new RegistryError("INVALID_ARGUMENT", registerFailed(name, `invalid args: ${problem}`), {
    driver,
  });
}

/** Refuses a register because of its device, naming those there are. For {@link openFailed}. */
export function unknownDevice(
  device: bigint | string | undefined,
  devices: readonly CudaDevice[],
): RegistryError {
  const isUuid = typeof device === "string";
  const known =
    devices.map(({ ordinal, name, uuid }) => `${ordinal} (${isUuid ? uuid : name})`).join(", ") || "none";
  const what = isUuid ? "device_uuid" : "device_id";
  // Repeated only if it can be meant for one: else it may be anything, a handle among others, and of any length.
  const shown = isUuid && !/^[\w-]{1,64}$/.test(device) ? "" : ` ${device}`;
  return new RegistryError(
    "INVALID_ARGUMENT",
    `${what}${shown} is no device of this service; its devices: ${known}`,
  );
}

/** Refuses a register that names two different devices. For {@link openFailed}. */
export function devicesDisagree(deviceId: bigint, { ordinal, uuid }: CudaDevice): RegistryError {
  return new RegistryError(
    "INVALID_ARGUMENT",
    `device_uuid ${uuid} is device ${ordinal}, not device_id ${deviceId}; give one of them`,
  );
}

/** What listing the devices rejected with, for {@link openFailed}: it is never the client's fault. */
export function devicesFailed(error: unknown): unknown {
  if (!(error instanceof DriverError)) return error;
  const driver = plainRefusal(error);
  const text = `the CUDA driver does not list its devices: ${describeRefusal(driver)}`;
  return new RegistryError("UNAVAILABLE", text, { driver, cause: error });
}

/** What a register is answered when finding the device, or opening the handle, rejected with `error`. */
export function openFailed(name: string, error: unknown): RegistryError {
  if (error instanceof DriverError) {
    const driver = plainRefusal(error);
    if (!isStickyResult(error.cudaCode)) return invalidArguments(name, describeRefusal(driver), driver);
    const text = registerFailed(name, `${describeRefusal(driver)}; the service has to be restarted`);
    return new RegistryError("UNAVAILABLE", text, { driver, cause: error });
  }
  if (error instanceof RegistryError) {
    const { code, driver } = error;
    if (code === "INVALID_ARGUMENT") return invalidArguments(name, error.message, driver);
    return new RegistryError(code, registerFailed(name, error.message), { driver, cause: error });
  }
  return registerFault(name, error);
}

/** A register failed by a fault of ours. */
export function registerFault(name: string, cause: unknown): RegistryError {
  return new RegistryError("INTERNAL", registerFailed(name, internalErrorText), { cause });
}

/** Refuses a register that would exceed a limit of the registry; `why` says which, and what to do. */
export function overLimit(name: string, why: string): RegistryError {
  return new RegistryError("RESOURCE_EXHAUSTED", registerFailed(name, why));
}

/** Refuses a region whose allocation does not fit into what may be mapped on its device. */
export function deviceFull(name: string, deviceId: number, allocated: bigint, limit: bigint): RegistryError {
  return overLimit(
    name,
    `its allocation of ${allocated} bytes would exceed the ${limit} that may be mapped on device ${deviceId} (--max-device-bytes); unregister regions on that device first`,
  );
}

export function alreadyInManager(name: string): RegistryError {
  return new RegistryError(
    "ALREADY_EXISTS",
    `shared memory region ${quoteRegionName(name)} already in manager`,
  );
}

export function noSuchRegion(name: string): RegistryError {
  return new RegistryError("NOT_FOUND", `Unable to find cuda shared memory region: ${quoteRegionName(name)}`);
}

/** There are no system regions here, so whichever is asked for. */
export function noSuchSystemRegion(name: string): RegistryError {
  return new RegistryError(
    "NOT_FOUND",
    `Unable to find system shared memory region: ${quoteRegionName(name)}`,
  );
}

export function systemSharedMemoryUnsupported(): RegistryError {
  return new RegistryError(
    "UNIMPLEMENTED",
    "system shared memory is not supported: this service registers CUDA shared memory only",
  );
}

export function unusable(name: string): RegistryError {
  return new RegistryError(
    "FAILED_PRECONDITION",
    `shared memory region ${quoteRegionName(name)} was unregistered and could not be closed; unregister it again`,
  );
}

/** The region was taken from whoever used it. */
export function pinRevoked(name: string): RegistryError {
  return new RegistryError(
    "FAILED_PRECONDITION",
    `shared memory region ${quoteRegionName(name)} was unregistered by force`,
  );
}

/** A region that is on its way out takes no new users. */
export function leaving(name: string): RegistryError {
  return new RegistryError(
    "FAILED_PRECONDITION",
    `shared memory region ${quoteRegionName(name)} is being unregistered`,
  );
}

/** The region is of the run before, and it is not known yet whether it still is. */
export function beingTakenUp(name: string): RegistryError {
  return new RegistryError(
    "UNAVAILABLE",
    `shared memory region ${quoteRegionName(name)} is still being taken up after the service's restart; try again`,
  );
}

/** The region is another's. */
export function notOwner(name: string): RegistryError {
  return new RegistryError(
    "PERMISSION_DENIED",
    `shared memory region ${quoteRegionName(name)} belongs to another client; call as its owner or with an admin's token`,
  );
}

export function contentsOff(): RegistryError {
  return new RegistryError(
    "PERMISSION_DENIED",
    "the contents of regions are not served; start the service with --allow-contents to serve them",
  );
}

export function unregisterAllOff(): RegistryError {
  return new RegistryError(
    "PERMISSION_DENIED",
    "this service unregisters regions by name only (--unregister-all none)",
  );
}

/** The region is not the one that the call is about. */
export function otherGeneration(name: string, expected: bigint, found: bigint): RegistryError {
  return new RegistryError(
    "FAILED_PRECONDITION",
    `shared memory region ${quoteRegionName(name)} has generation ${found}, not ${expected}: it was registered anew`,
  );
}

/** A replacement found the region in a state in which it cannot be replaced; `why` says which. */
export function notReplaceable(name: string, why: string): RegistryError {
  return new RegistryError(
    "FAILED_PRECONDITION",
    registerFailed(name, `the region of that name cannot be replaced: ${why}`),
  );
}

export function noLease(name: string): RegistryError {
  return new RegistryError(
    "FAILED_PRECONDITION",
    `shared memory region ${quoteRegionName(name)} has no lease; say how long it shall be`,
  );
}

/** The session ended before the register was done. */
export function sessionEnded(name: string): RegistryError {
  return new RegistryError("UNAUTHENTICATED", registerFailed(name, "its session has ended"));
}

export function exportersUnwatched(): RegistryError {
  return new RegistryError("UNIMPLEMENTED", "this service cannot watch exporters; register without one");
}

/** Nobody unregistered the region, or let go of it, in the time given. */
export function stillInUse(name: string, pins: number): RegistryError {
  return new RegistryError(
    "DEADLINE_EXCEEDED",
    `shared memory region ${quoteRegionName(name)} is unregistered and still used by ${pins}; its mapping is closed when they let go`,
  );
}

export function waitedInVain(name: string): RegistryError {
  return new RegistryError(
    "DEADLINE_EXCEEDED",
    `shared memory region ${quoteRegionName(name)} did not become ready in the time given`,
  );
}

/** What must survive a restart could not be written down, so nothing was done. */
export function notJournaled(name: string, cause: unknown): RegistryError {
  const text = cause instanceof RegistryError ? cause.message : internalErrorText;
  const code = cause instanceof RegistryError ? cause.code : "INTERNAL";
  return new RegistryError(code, `shared memory region ${quoteRegionName(name)} stays as it was: ${text}`, {
    cause,
  });
}

/** A register that could not be written down is undone. */
export function registerNotJournaled(name: string, cause: unknown): RegistryError {
  if (!(cause instanceof RegistryError)) return registerFault(name, cause);
  return new RegistryError(cause.code, registerFailed(name, cause.message), { cause });
}

export function exiting(): RegistryError {
  return new RegistryError("UNAVAILABLE", exitingText);
}

/** The driver would not take a mapping back. */
export function closeFailed(cause: unknown): RegistryError {
  const driver = refusalBehind(cause);
  const text = cause instanceof RegistryError ? cause.message : driver && describeRefusal(driver);
  return new RegistryError("INTERNAL", `failed to close CUDA IPC handle: ${text ?? internalErrorText}`, {
    driver,
    cause,
  });
}

/** A register failed for `reason`, and its mapping could not be closed either. */
export function undoFailed(name: string, reason: RegistryError, failure: RegistryError): RegistryError {
  const why = `${failure.message}; unregister the region to try again`;
  return new RegistryError("INTERNAL", registerFailed(name, why), {
    driver: failure.driver,
    cause: new AggregateError([reason, failure.cause], "a register that failed and could not be undone"),
  });
}

/** A copy through a pin failed. */
export function copyFailed(name: string, cause: unknown): RegistryError {
  if (cause instanceof RegistryError) return cause;
  const driver = refusalBehind(cause);
  const text = `failed to copy the memory of shared memory region ${quoteRegionName(name)}: `;
  return new RegistryError("INTERNAL", text + (driver ? describeRefusal(driver) : internalErrorText), {
    driver,
    cause,
  });
}

/** Some regions are still mapped after all were to be unregistered. Names as many as an error's text may. */
export function unregisterAllFailed(failures: readonly FailedRegion[]): RegistryError {
  let text = "Failed to unregister the following cuda shared memory regions: ";
  let named = 0;
  let bytes = 0;
  const first = firstByName(failures, maxNamedRegions);
  for (const { name } of first) {
    bytes += Buffer.byteLength(name);
    if (named > 0 && bytes > maxNamedBytes) break;
    text += `${name} ,`;
    named++;
  }
  if (named < failures.length) text += ` and ${failures.length - named} more`;
  const cause = new AggregateError(
    first.map(({ error }) => error),
    "closes that failed",
  );
  return new RegistryError("INTERNAL", text, { cause });
}

/** So many of them, sorted by name. Of 100,000 that is a matter of milliseconds, which sorting all of them is not. */
function firstByName(failures: readonly FailedRegion[], count: number): FailedRegion[] {
  const first: FailedRegion[] = [];
  for (const failure of failures) {
    const last = first.at(-1);
    if (first.length === count && last !== undefined && compareRegionNames(failure.name, last.name) >= 0) {
      continue;
    }
    const at = first.findIndex(({ name }) => compareRegionNames(failure.name, name) < 0);
    first.splice(at === -1 ? first.length : at, 0, failure);
    if (first.length > count) first.pop();
  }
  return first;
}

function registerFailed(name: string, why: string): string {
  return `failed to register shared memory region ${quoteRegionName(name)}: ${why}`;
}

function refusalBehind(cause: unknown): DriverRefusal | undefined {
  if (cause instanceof DriverError) return plainRefusal(cause);
  return cause instanceof RegistryError ? cause.driver : undefined;
}

function plainRefusal({ cudaError, cudaCode, hint }: DriverRefusal): DriverRefusal {
  return { cudaError, cudaCode, hint };
}
