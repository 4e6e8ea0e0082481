import { setTimeout } from "node:timers/promises";
import type { CudaDriver } from "./core/driver.js";

/** How often a driver is looked for, in milliseconds. */
const lookPeriodMs = 1000;

/** Resolves once the driver answers; never if the service stops before. */
export async function untilUsable(driver: CudaDriver, shutdown: AbortSignal): Promise<void> {
  while (!shutdown.aborted) {
    const isUsable = await driver.devices().then(
      () => true,
      () => false,
    );
    if (isUsable) return;
    await setTimeout(lookPeriodMs, undefined, { ref: false });
  }
  return new Promise(() => {});
}
