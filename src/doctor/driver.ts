import type { DriverKind } from "../core/driver.js";
import type { DriverPreference } from "../native/driver-choice.js";
import { driverAdvice } from "./driver-advice.js";
import { type Finding, ok, problem } from "./finding.js";
import type { Host } from "./host.js";

/** What choosing a driver came to. */
export interface DriverOutcome {
  readonly preference: DriverPreference;
  /** This and the next two are null if there is no usable driver. */
  readonly kind: DriverKind | null;
  readonly libraryPath: string | null;
  /** `major.minor`. */
  readonly cudaVersion: string | null;
  /** What whoever chose was warned of. */
  readonly warnings: readonly string[];
  /** null if there is a usable driver. */
  readonly failure: DriverFailure | null;
}

export interface DriverFailure {
  /** `no_gpu`: no library, or one that finds no device. `refused`: the driver gave `cudaCode`. */
  readonly why: "no_gpu" | "refused" | "unusable" | "unanswered";
  readonly text: string;
  /** The `CUresult`; null where the driver gave none. */
  readonly cudaCode: number | null;
}

/** Which driver there is, or why there is none. */
export function driverFinding(outcome: DriverOutcome, host: Host): Finding {
  const { kind, libraryPath, cudaVersion, warnings, failure } = outcome;
  const kernelModule = kernelModuleVersion(host);
  const facts = {
    kind,
    library_path: libraryPath,
    cuda_version: cudaVersion,
    kernel_module_version: kernelModule,
  };
  if (failure !== null) return problem("FAIL", "driver", failure.text, driverAdvice(outcome, host), facts);
  const [warning] = warnings;
  if (warning !== undefined) return problem("WARN", "driver", warning, driverAdvice(outcome, host), facts);
  const told =
    kind === "emulated"
      ? `the emulated driver, with memory on the host: CUDA ${cudaVersion}`
      : `NVIDIA's driver: CUDA ${cudaVersion}${kernelModule === null ? "" : `, kernel module ${kernelModule}`}`;
  return ok("driver", `${told}, from ${libraryPath}`, facts);
}

/** As NVIDIA's kernel module tells it, such as `550.54.15`; null where it is not loaded. */
function kernelModuleVersion(host: Host): string | null {
  const text = host.readText("/proc/driver/nvidia/version") ?? "";
  return /Kernel Module\b.*?\s(\d+(?:\.\d+)+)\s/.exec(text)?.[1] ?? null;
}
