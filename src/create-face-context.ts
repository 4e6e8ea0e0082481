import { randomUUID } from "node:crypto";
import type { CudaDriver } from "./core/driver.js";
import type { FaceContext } from "./core/face-context.js";
import type { RegionRegistry } from "./core/registry.js";
import { createRequestIds } from "./core/request-ids.js";
import { packageVersion } from "./version.js";

/** What a face needs of its surroundings; all that is left out of FaceContext gets a default. */
export interface FaceContextOptions extends Partial<Omit<FaceContext, "registry">> {
  readonly registry: RegionRegistry;
  /** The registry's driver: the faces tell its kind, and are ready while it is usable. */
  readonly driver: CudaDriver;
}

/**
 * What both faces stand on, for an application that mounts them in servers of its own. Left alone, registers
 * are allowed, nothing ends the faces before their servers do, and faults are not reported anywhere.
 */
export function createFaceContext({ driver, ...options }: FaceContextOptions): FaceContext {
  const shutdown = options.shutdown ?? new AbortController().signal;
  return {
    info: {
      name: "cudashm",
      version: packageVersion(),
      extensions: ["cuda_shared_memory"],
      instanceId: randomUUID(),
      epoch: 1n,
    },
    readiness() {
      if (shutdown.aborted) return "exiting";
      if (driver.health.state === "usable") return "ready";
      // A driver is looked for when it is first asked for anything; it limits by itself how often.
      driver.devices().catch(() => {});
      return "not_ready";
    },
    cudaDriver: () => driver.kind ?? driver.health.state,
    allowClientShm: true,
    nextRequestId: createRequestIds(),
    reportFault: () => {},
    ...options,
    shutdown,
  };
}
