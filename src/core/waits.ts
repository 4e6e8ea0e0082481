import { RegistryError } from "./errors.js";

/** The longest that a call waits for a region, in milliseconds. */
const maxWaitMs = 5 * 60 * 1000;

/** Throws INVALID_ARGUMENT unless a call may wait so long. */
export function assertWait(waitMs: number): void {
  if (waitMs >= 0 && waitMs <= maxWaitMs) return;
  throw new RegistryError(
    "INVALID_ARGUMENT",
    `a wait lasts 0 to ${maxWaitMs / 1000} seconds, got ${waitMs / 1000}`,
  );
}
