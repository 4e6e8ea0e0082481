import { randomUUID } from "node:crypto";
import { openAccess, registryLimits } from "./access.js";
import type { Config } from "./config.js";
import type { FaceContext } from "./core/face-context.js";
import { exiting } from "./core/refusals.js";
import { RegionRegistry } from "./core/registry.js";
import { createRequestIds } from "./core/request-ids.js";
import { tellAll } from "./core/request-observer.js";
import { DriverWatch } from "./driver-watch.js";
import { type Address, type Faces, listen } from "./faces.js";
import { readListenPlaces } from "./listen-places.js";
import { type Log, logChange, logFault, logRequests } from "./log.js";
import { createCudaDriver, type SelectedDriver } from "./native/driver-selection.js";
import { NativeExporterWatch } from "./native/exporter-watch.js";
import { openRegionState } from "./region-state.js";
import { watchTls } from "./tls-watch.js";
import type { Tracing } from "./tracing/tracing.js";
import { untilUsable } from "./until-usable.js";
import { packageVersion } from "./version.js";

/** A running service. Disposing it stops it. */
export interface Service extends AsyncDisposable {
  /** Where HTTP listens, with the real port; null if it was switched off, or listens on no port. */
  readonly http: Address | null;
  readonly grpc: Address | null;
  readonly metrics: Address | null;
  /**
   * Answers what is on its way, gives every mapping back to the driver and resolves; the second call waits
   * for the first. Rejects with StopTimeout after the configured exit timeout.
   */
  stop(): Promise<void>;
}

/** The exit timeout passed before everything was given back. */
export class StopTimeout extends Error {
  override readonly name = "StopTimeout";
  /** What was still open, in words. */
  readonly waitingFor: readonly string[];

  constructor(seconds: number, waitingFor: readonly string[]) {
    super(`could not stop within ${seconds} s (--exit-timeout-secs)`);
    this.waitingFor = waitingFor;
  }
}

/** What a service is given besides its configuration. */
interface ServiceParts {
  readonly log: Log;
  readonly diagnose?: FaceContext["diagnose"];
  /** Not stopped with the service: whoever started it sends what is left. */
  readonly tracing?: Tracing | undefined;
}

/** Long enough to cost nothing, short enough for a supervisor that looks a few times a minute. */
const driverProbePeriodMs = 10_000;

/**
 * Starts the driver in the background and both faces over one registry. Resolves once every face that is
 * switched on listens; rejects with ListenError, and nothing left listening, if one cannot, with UsageError if a
 * file that the configuration names is no good, and with StateFileError if the state file cannot be had.
 */
export async function startService(
  config: Config,
  { log, diagnose, tracing }: ServiceParts,
): Promise<Service> {
  const access = await openAccess(config, log);
  const places = await readListenPlaces(config);
  const state = await openRegionState(config, log);
  const driver = createCudaDriver({
    preference: config.driver,
    ...(config.driverLibrary === null ? {} : { libraryPath: config.driverLibrary }),
    contextLingerMs: config.contextLingerSecs * 1000,
    warn: (text) => log.warn(text),
  });
  const watch = new DriverWatch(driver, log, { livenessGraceMs: config.livenessGraceSecs * 1000 });
  // The first look is what starts the driver.
  watch.readiness();
  const metrics = config.allowMetrics
    ? new (await import("./metrics/service-metrics.js")).ServiceMetrics(driver)
    : null;
  const counted = metrics?.driver ?? driver;
  const registry = new RegionRegistry({
    driver: tracing?.traceDriver(counted) ?? counted,
    limits: registryLimits(config),
    policy: { access: config.access, unregisterAll: config.unregisterAll },
    exporters: new NativeExporterWatch(),
    orphanGraceMs: config.orphanGraceSecs * 1000,
    ...state.registryOptions,
    observers: [
      ...(state.registryOptions.observers ?? []),
      (change) => logChange(log, change),
      ...(metrics === null ? [] : [metrics.regions.onChange]),
    ],
    onObserverError: (error, { region, context }) =>
      log.error({ err: error, region: region.name, requestId: context.requestId }, "observer failed"),
  });
  const shutdown = new AbortController();
  const context: FaceContext = {
    registry,
    info: {
      name: config.id,
      version: packageVersion(),
      extensions: ["cuda_shared_memory"],
      instanceId: randomUUID(),
      epoch: state.epoch,
    },
    readiness() {
      if (shutdown.signal.aborted) return "exiting";
      const readiness = watch.readiness();
      return registry.adoption.pending > 0 ? "not_ready" : readiness;
    },
    isLive: () => watch.isLive(),
    cudaDriver: () => watch.describe(),
    diagnose,
    allowClientShm: config.allowClientShm,
    gates: access.gates,
    shutdown: shutdown.signal,
    nextRequestId: createRequestIds(),
    reportFault: (fault) => logFault(log, fault),
    observeOperation: tellAll([
      ...(metrics === null ? [] : [metrics.requests.observe]),
      ...(config.logVerbose > 0 ? [logRequests(log)] : []),
    ]),
    traceOperation: tracing?.traceOperation,
  };

  // Before anyone can call: whoever unregisters such a region, or registers another of its name, has to find it.
  void state.adopt(registry, untilUsable(driver, shutdown.signal));
  const faces = await listen(config, places, context, metrics).catch(async (error: unknown) => {
    shutdown.abort(exiting());
    await registry.close();
    await state.close();
    throw error;
  });
  for (const face of faces) for (const where of face.where) log.info(`Started ${face.title} at ${where}`);

  const probing = setInterval(() => void watch.probe(devicesInUse(registry)), driverProbePeriodMs).unref();
  const stopWatchingTokens = access.watch();
  const stopWatchingTls = watchTls(places, log);
  const stop = once(() => {
    log.info("stopping");
    clearInterval(probing);
    stopWatchingTls();
    stopWatchingTokens();
    const open = new Set(faces);
    return within(
      config.exitTimeoutSecs,
      async (deadline) => {
        registry.refuseRegisters();
        shutdown.abort(exiting());
        await closeFaces(faces, open, deadline);
        log.debug("every call was answered; closing every mapping");
        await registry
          .close()
          .catch((error: unknown) => log.error({ err: error }, "not every region could be closed"));
        await state.close();
        log.info("stopped");
      },
      () => [
        ...[...open].map((face) => `calls of ${face.title}`),
        ...registry.statuses().map((region) => `region ${region.name} on device ${region.deviceId}`),
        ...driver.runningCalls().map(describeCall),
      ],
    );
  });
  return {
    http: faces.find((face) => face.name === "http")?.address ?? null,
    grpc: faces.find((face) => face.name === "grpc")?.address ?? null,
    metrics: faces.find((face) => face.name === "metrics")?.address ?? null,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function devicesInUse(registry: RegionRegistry): readonly number[] {
  const devices = new Set<number>();
  for (const { regions } of registry.blocks()) for (const { deviceId } of regions) devices.add(deviceId);
  return [...devices];
}

async function closeFaces(faces: Faces, open: Set<Faces[number]>, deadline: AbortSignal): Promise<void> {
  await Promise.all(
    faces.map(async (face) => {
      await face.close(deadline);
      open.delete(face);
    }),
  );
}

/** Runs `work`, with half the time for its deadline; rejects with StopTimeout when all of it is over. */
async function within(
  seconds: number,
  work: (deadline: AbortSignal) => Promise<void>,
  waitingFor: () => readonly string[],
): Promise<void> {
  const deadline = new AbortController();
  // Not AbortSignal.timeout: its timer does not keep the process alive, and a hung driver call does neither.
  const half = setTimeout(() => deadline.abort(), seconds * 500);
  let end: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    end = setTimeout(() => reject(new StopTimeout(seconds, waitingFor())), seconds * 1000);
  });
  try {
    await Promise.race([work(deadline.signal), timeout]);
  } finally {
    clearTimeout(half);
    clearTimeout(end);
  }
}

function once(work: () => Promise<void>): () => Promise<void> {
  let started: Promise<void> | undefined;
  return () => {
    started ??= work();
    return started;
  };
}

function describeCall(call: ReturnType<SelectedDriver["runningCalls"]>[number]): string {
  const where = call.deviceId === null ? "" : ` on device ${call.deviceId}`;
  return `the driver's answer to ${call.what}${where}, for ${Math.round(call.runningMs)} ms`;
}
