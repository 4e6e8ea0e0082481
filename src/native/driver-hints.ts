import { isStickyResult } from "../core/cuda-results.js";
import type { DriverKind } from "../core/driver.js";

type Hints = Readonly<Record<number, string>>;

const openCall = "cuIpcOpenMemHandle";

// What these results say of a handle they say of an open only: from another call they mean other things.
const openHints: Hints = {
  1: "the handle is stale or corrupt, its exporter has exited or freed the memory, or the exporter's GPU is not visible here; only memory from cudaMalloc has a handle",
  201: "the exporter is this very process, or has this process's number in another PID namespace; containers must share the PID namespace",
  205: "a peer mapping of this GPU's memory is impossible here (IOMMU, small BAR)",
  208: "the memory is already mapped, in another context or by an old driver that maps a handle once only",
  400: "the exporter is gone, the handle belongs to another context, or this is WSL2, where memory cannot be shared so",
};

const emulatedOpenHints: Hints = {
  1: "the handle is stale or corrupt, or its exporter has exited or freed the memory",
  201: "the exporter is this very process, or has this process's number in another PID namespace",
  800: "this process may not reach the exporter's memory; run both as the same user (equal uids), the exporter with no capability that this process lacks",
};

const commonHints: Hints = {
  2: "the GPU's memory or its address space is used up",
  3: "the driver was not initialised in this process",
  4: "the driver is shutting down with this process",
  34: "the library is a stub without a driver behind it; install NVIDIA's driver",
  35: "the driver is too old for this library; update NVIDIA's driver",
  46: "the GPU is in exclusive-process mode and another process uses it",
  100: "there is no GPU here; in a container, give it the GPU and the `compute` driver capability",
  101: "there is no such device in this process; check CUDA_VISIBLE_DEVICES",
  217: "the two GPUs have no peer access to each other",
  711: "too many GPUs are peers already",
  801: "this platform cannot share CUDA memory between processes",
  803: "the kernel's driver and the library do not match; reboot, or reinstall NVIDIA's driver",
  804: "the driver's compatibility library does not support this GPU",
};

const emulatedHints: Hints = {
  1: "an argument of the call, or a CUDASHM_EMULATED_ variable, cannot be used; of a variable standard error says more",
  2: "the emulated device's memory is used up; CUDASHM_EMULATED_MEMORY_BYTES sets how much there is",
  101: "there is no such device; CUDASHM_EMULATED_DEVICE_COUNT sets how many there are",
  801: "the emulated driver was told to have no IPC (CUDASHM_EMULATED_NO_IPC)",
};

const unusableCodes: ReadonlySet<number> = new Set([3, 4, 34, 35, 100, 803, 804]);

/** Whether a refusal says that there is no usable driver, rather than anything about the call. */
export function isUnusable(cudaCode: number): boolean {
  return unusableCodes.has(cudaCode);
}

/** The likely cause of a refusal of `call`, for the person who has to mend it. */
export function driverHint(kind: DriverKind, call: string, cudaCode: number): string {
  const forOpen = call === openCall;
  return (
    (kind === "emulated" && forOpen ? emulatedOpenHints[cudaCode] : undefined) ??
    (kind === "emulated" ? emulatedHints[cudaCode] : undefined) ??
    (forOpen ? openHints[cudaCode] : undefined) ??
    commonHints[cudaCode] ??
    (isStickyResult(cudaCode)
      ? "the GPU or its driver had a fault that only a new process gets over"
      : "see the error's description in NVIDIA's CUDA driver API")
  );
}
