import { isStickyResult } from "../core/cuda-results.js";
import { DriverError, type DriverKind } from "../core/driver.js";
import { type DriverRefusal, RegistryError } from "../core/errors.js";
import type { RawFailure } from "./addon.js";
import { driverHint, isUnusable } from "./driver-hints.js";

const noDeviceCode = 100;

/** There is nothing to use: no library, or a library that works and finds no device. */
export class NoGpuError extends RegistryError {}

/** What a failure means to the caller of a driver of this kind: a DriverError or a RegistryError. */
export function failureToError(failure: RawFailure, kind: DriverKind): DriverError | RegistryError {
  switch (failure.failed) {
    case "refused":
      return refusalToError(failure, kind);
    case "full":
      return new RegistryError(
        "RESOURCE_EXHAUSTED",
        "the device has as many calls waiting as it can take; try again when some are done",
      );
    case "closed":
      return new RegistryError(
        "FAILED_PRECONDITION",
        "the memory is closed, or about to be; open it again to use it",
      );
    case "library_missing":
      return new NoGpuError(
        "UNAVAILABLE",
        `no CUDA driver: ${failure.text}; install NVIDIA's driver (in a container, ask for the \`compute\` driver capability), or use the emulated one`,
      );
    case "library_unusable":
      return new RegistryError("UNAVAILABLE", `the CUDA driver cannot be used: ${failure.text}; update it`);
  }
}

/** Why `cuInit`, or the first look at the devices, means that there is no usable driver. */
export function initialiseError(failure: RawFailure, kind: DriverKind): RegistryError {
  if (failure.failed !== "refused") {
    return new RegistryError("UNAVAILABLE", failureToError(failure, kind).message);
  }
  const known = refusalOf(failure, kind);
  // Nothing ran yet that could have spoilt the process, so unlike later it may get better by itself.
  const hint = isStickyResult(failure.code)
    ? "the driver has a fault of its own; see the kernel's log"
    : known.hint;
  const text = `no usable CUDA driver: ${described(failure)}: ${hint}`;
  const driver = { ...known, hint };
  return failure.code === noDeviceCode
    ? new NoGpuError("UNAVAILABLE", text, { driver })
    : new RegistryError("UNAVAILABLE", text, { driver });
}

function stickyReason(failure: RawFailure): string {
  return `the CUDA driver no longer works in this process since ${described(failure)}: restart the service`;
}

function refusalToError(failure: RawFailure, kind: DriverKind): DriverError | RegistryError {
  const driver = refusalOf(failure, kind);
  if (isStickyResult(failure.code))
    return new RegistryError("UNAVAILABLE", stickyReason(failure), { driver });
  if (isUnusable(failure.code)) {
    return new RegistryError("UNAVAILABLE", `no usable CUDA driver: ${described(failure)}: ${driver.hint}`, {
      driver,
    });
  }
  return new DriverError(failure.call, driver);
}

function refusalOf(failure: RawFailure, kind: DriverKind): DriverRefusal {
  return {
    cudaError: failure.name,
    cudaCode: failure.code,
    hint: driverHint(kind, failure.call, failure.code),
  };
}

function described(failure: RawFailure): string {
  return `${failure.call}: ${failure.name} (${failure.code})`;
}
