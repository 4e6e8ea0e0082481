import type { Gate } from "./gate.js";
import type { Protocol } from "./region.js";
import type { RegionRegistry } from "./registry.js";
import type { ObserveOperation } from "./request-observer.js";
import type { TraceOperation } from "./request-tracer.js";

/** `not_ready`: alive without a usable driver. `exiting`: on the way down. */
export type Readiness = "ready" | "not_ready" | "exiting";

/** What the service says of itself. */
interface ServiceInfo {
  readonly name: string;
  readonly version: string;
  readonly extensions: readonly string[];
  /** Another one for each start of the service. */
  readonly instanceId: string;
  /** Grows by one with each start on one state file; 1 without. */
  readonly epoch: bigint;
}

/** A fault of ours, for the log; the client got a fixed text. */
export interface Fault {
  readonly requestId: string;
  readonly protocol: Protocol;
  readonly error: unknown;
}

/** What every face stands on: the registry and the few facts both of them tell. */
export interface FaceContext {
  readonly registry: RegionRegistry;
  readonly info: ServiceInfo;
  readiness(): Readiness;
  /** False once nothing but a new process helps, so that a supervisor restarts this one. Absent: always true. */
  isLive?(): boolean;
  /** `cuda`, `emulated`, or why there is neither. */
  cudaDriver(): string;
  /** The report of `cudashm doctor`, as JSON. Absent where the service does not offer it. */
  readonly diagnose?: (() => Promise<string>) | undefined;
  /** False refuses registers, as Triton's flag of that name. */
  readonly allowClientShm: boolean;
  /** What the calls of each face pass first; without one, every call is let in. */
  readonly gates?: { readonly http?: Gate | undefined; readonly grpc?: Gate | undefined };
  /** Aborted when the service stops: streams end, pending registers are undone. */
  readonly shutdown: AbortSignal;
  /** A new id for a request, unique within this process. */
  nextRequestId(): string;
  reportFault(fault: Fault): void;
  /** Asked for whoever wants to hear of every request; absent, no request reads a clock for it. */
  readonly observeOperation?: ObserveOperation | undefined;
  /** Asked for whoever traces requests; absent, none is. */
  readonly traceOperation?: TraceOperation | undefined;
}

/** Triton's text for a register while `allowClientShm` is false. */
export const clientShmDisabledText =
  "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.";
