import { logVerbosity, Server, ServerCredentials, setLogVerbosity } from "@grpc/grpc-js";
import type { FaceContext } from "../core/face-context.js";
import { type Listeners, type ListenOptions, openListeners } from "../listen/listeners.js";
import { addHealthService } from "./health.js";
import { addInferenceService } from "./inference-service.js";
import { OpenCalls } from "./open-calls.js";
import { addReflection } from "./reflection.js";
import { addRegistryService } from "./registry/registry-service.js";

export interface GrpcServicesOptions {
  /** How often readiness is looked at while a client watches health, in milliseconds. */
  readonly healthPollMs?: number;
  /** Whether the contents of regions are read and written. */
  readonly allowContents?: boolean;
}

export interface GrpcListenOptions extends GrpcServicesOptions, ListenOptions {
  /** A connection is asked for a sign of life each time so long has passed; 5 minutes unless given. */
  readonly keepaliveTimeMs?: number;
  /** A connection that gives none for so long is dropped; 20 seconds unless given. */
  readonly keepaliveTimeoutMs?: number;
  /** A larger request is RESOURCE_EXHAUSTED. */
  readonly maxReceiveMessageBytes?: number;
}

/** The gRPC face, listening. */
export interface GrpcServer {
  readonly address: Listeners["address"];
  /**
   * Stops accepting and waits for the calls on their way; ends them by force when `deadline` aborts. Nobody waits
   * longer than a second for peers who do not read what they were answered.
   */
  close(deadline: AbortSignal): Promise<void>;
}

/** Adds every gRPC service of this package to a grpc-js server of one's own. */
export function addGrpcServices(server: Server, face: FaceContext, options: GrpcServicesOptions = {}): void {
  addServices(server, face, new OpenCalls(face.shutdown), options);
}

function addServices(
  server: Server,
  face: FaceContext,
  openCalls: OpenCalls,
  { healthPollMs = 500, allowContents = false }: GrpcServicesOptions,
): void {
  addInferenceService(server, face, openCalls);
  addRegistryService(server, face, openCalls, allowContents);
  addHealthService(server, face, openCalls, healthPollMs);
  addReflection(server, face, openCalls);
}

/**
 * Keeps the library from writing to standard error by itself, in the whole process: what it has to say there is what
 * clients sent, and a header that it does not like may be a token or the secret of a session.
 */
export function quietLibrary(): void {
  setLogVerbosity(logVerbosity.NONE);
}

/** Serves every service. Rejects with UnixSocketError or the system's error, listening on nothing, if it cannot. */
export async function listenGrpc(face: FaceContext, options: GrpcListenOptions): Promise<GrpcServer> {
  const server = new Server({
    "grpc.max_receive_message_length": options.maxReceiveMessageBytes ?? 64 * 1024,
    "grpc.keepalive_time_ms": options.keepaliveTimeMs ?? 300_000,
    "grpc.keepalive_timeout_ms": options.keepaliveTimeoutMs ?? 20_000,
    "grpc.enable_channelz": 0,
  });
  const openCalls = new OpenCalls(face.shutdown);
  addServices(server, face, openCalls, options);
  const { injectConnection } = server.createConnectionInjector(ServerCredentials.createInsecure());
  const kind = { alpn: "h2", allowHalfOpen: false } as const;
  const listeners = await openListeners(options, kind, injectConnection);
  let closed: Promise<unknown> | undefined;
  return {
    address: listeners.address,
    async close(deadline) {
      if (closed === undefined) {
        closed = Promise.all([listeners.close(), shutDown(server)]);
        breakOffUnread(closed, openCalls, listeners);
      }
      const force = () => listeners.destroyConnections();
      if (deadline.aborted) force();
      deadline.addEventListener("abort", force, { once: true });
      await closed;
      deadline.removeEventListener("abort", force);
    },
  };
}

/** Breaks the connections once no call has been worked on for half a second, every half a second. */
function breakOffUnread(closed: Promise<unknown>, openCalls: OpenCalls, listeners: Listeners): void {
  let wasIdle = false;
  const timer = setInterval(() => {
    if (wasIdle && openCalls.isIdle) listeners.destroyConnections();
    wasIdle = openCalls.isIdle;
  }, 500).unref();
  const stop = () => clearInterval(timer);
  closed.then(stop, stop);
}

/** Sends every client away; resolves when the last one's calls are done and it is gone. */
function shutDown(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.tryShutdown(() => resolve());
  });
}
