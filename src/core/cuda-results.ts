import type { DriverRefusal } from "./errors.js";

/** `CUresult` numbers after which every later call of this process fails too: only a new process helps. */
const stickyResults: ReadonlySet<number> = new Set([700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999]);

/** Whether the driver is lost to this process after answering `cudaCode`. */
export function isStickyResult(cudaCode: number): boolean {
  return stickyResults.has(cudaCode);
}

/** The driver's words as they go into a message: `CUDA_ERROR_INVALID_VALUE (1): hint`. */
export function describeRefusal(refusal: DriverRefusal): string {
  return `${refusal.cudaError} (${refusal.cudaCode}): ${refusal.hint}`;
}
