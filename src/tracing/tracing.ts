import { diag, trace } from "@opentelemetry/api";
import { NodeSDK, resources } from "@opentelemetry/sdk-node";
import type { CudaDriver } from "../core/driver.js";
import type { TraceOperation } from "../core/request-tracer.js";
import type { Log } from "../log.js";
import { logDiagnostics } from "./diagnostics.js";
import { traceRequests } from "./request-spans.js";
import { TracedDriver } from "./traced-driver.js";

/** Traces of a service, sent where OpenTelemetry's variables say. */
export interface Tracing {
  readonly traceOperation: TraceOperation;
  /** The driver to give to the registry. */
  traceDriver(driver: CudaDriver): CudaDriver;
  /** Sends what is left. False if that took longer than `limitMs`: then it is still being tried. Never rejects. */
  stop(limitMs: number): Promise<boolean>;
}

export interface TracingOptions {
  /** The service's name unless OpenTelemetry's variables have one. */
  readonly name: string;
  readonly version: string;
  readonly log: Log;
}

/** Starts OpenTelemetry for the whole process, which it reads its own variables from. */
export function startTracing({ name, version, log }: TracingOptions): Tracing {
  // It would have the SDK write to standard output, into the log.
  delete process.env.OTEL_LOG_LEVEL;
  const sdk = new NodeSDK({
    resource: resources.defaultResource().merge(
      resources.resourceFromAttributes({
        "service.name": name,
        "service.version": version,
        "process.pid": process.pid,
      }),
    ),
    // Not the process's: they would send the command line, and the secrets that options may hold.
    resourceDetectors: [resources.envDetector, resources.hostDetector],
    metricReaders: [],
    logRecordProcessors: [],
  });
  logDiagnostics(log);
  sdk.start();
  const tracer = trace.getTracer("cudashm", version);
  return {
    traceOperation: traceRequests(tracer),
    traceDriver: (driver) => new TracedDriver(driver, tracer),
    async stop(limitMs) {
      const sent = sdk.shutdown().then(
        () => true,
        (error: unknown) => {
          diag.error(error instanceof Error ? error.message : String(error));
          return true;
        },
      );
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<false>((resolve) => {
        timer = setTimeout(() => resolve(false), limitMs);
      });
      const inTime = await Promise.race([sent, late]);
      clearTimeout(timer);
      if (!inTime) log.warn("the last traces could not be sent in time and are lost");
      return inTime;
    },
  };
}
