import type { Config } from "./config.js";
import type { FaceContext } from "./core/face-context.js";
import { type FaceName, formatAddress, formatSocket, ListenError } from "./listen-error.js";
import type { ListenPlace, ListenPlaces } from "./listen-places.js";
import { isLoopback } from "./loopback.js";
import type { ServiceMetrics } from "./metrics/service-metrics.js";

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** One face of the registry, or its metrics, listening. */
interface Face {
  readonly name: FaceName;
  /** What the start-up line calls it: scripts written for Triton look for that. */
  readonly title: string;
  /** Each place it listens on: `host:port` with the real port, `unix:path`. */
  readonly where: readonly string[];
  /** Null if it listens on no port. */
  readonly address: Address | null;
  /** Stops accepting and waits for the calls on their way; ends them by force when `deadline` aborts. */
  close(deadline: AbortSignal): Promise<void>;
}

export type Faces = readonly Face[];

/**
 * Listens with every face that is switched on, and for the metrics if there are any. If one cannot, closes the
 * others and rejects with ListenError.
 */
export async function listen(
  config: Config,
  places: ListenPlaces,
  context: FaceContext,
  metrics: ServiceMetrics | null,
): Promise<Faces> {
  const attempts = await Promise.allSettled([
    ...(metrics === null ? [] : [listenMetricsFace(config, context, metrics)]),
    ...(config.allowGrpc ? [listenGrpcFace(config, places.grpc, context)] : []),
    ...(config.allowHttp ? [listenHttpFace(config, places.http, context)] : []),
  ]);
  const faces = attempts.flatMap((attempt) => (attempt.status === "fulfilled" ? [attempt.value] : []));
  const failed = attempts.find((attempt) => attempt.status === "rejected");
  if (failed === undefined) return faces;
  await Promise.all(faces.map((face) => face.close(AbortSignal.abort())));
  throw failed.reason;
}

// Each face is imported only if it is switched on: their libraries are most of the start-up time.
async function listenGrpcFace(config: Config, place: ListenPlace, context: FaceContext): Promise<Face> {
  const { listenGrpc, quietLibrary } = await import("./grpc/server.js");
  quietLibrary();
  const server = await listenGrpc(context, {
    ...place,
    allowContents: config.allowContents,
    keepaliveTimeMs: config.grpcKeepaliveTime,
    keepaliveTimeoutMs: config.grpcKeepaliveTimeout,
    maxConnections: config.grpcMaxConnections ?? undefined,
  }).catch((error: unknown) => {
    throw new ListenError("grpc", config.grpcAddress, config.grpcPort, error);
  });
  return face("grpc", "GRPCInferenceService", server, place.unixSocket?.path);
}

async function listenHttpFace(config: Config, place: ListenPlace, context: FaceContext): Promise<Face> {
  const [{ createHttpApp }, { listenHttp }] = await Promise.all([
    import("./http/app.js"),
    import("./http/server.js"),
  ]);
  const app = createHttpApp(context, {
    allowContents: config.allowContents,
    maxInputSize: config.httpMaxInputSize,
    allowedOrigins: config.httpAllowedOrigin,
    allowedHosts: knownHosts(config),
  });
  const server = await listenHttp(app, {
    ...place,
    maxConnections: config.httpMaxConnections ?? undefined,
  }).catch((error: unknown) => {
    throw new ListenError("http", config.httpAddress, config.httpPort, error);
  });
  return face("http", "HTTPService", server, place.unixSocket?.path);
}

/**
 * The names that HTTP answers to; undefined if any will do. A container listens on every address and may still be
 * published to loopback alone, where a page can reach it: names that are given count wherever it listens.
 */
function knownHosts({ httpAddress, httpAllowedHost }: Config): readonly string[] | undefined {
  return isLoopback(httpAddress) || httpAllowedHost.length > 0 ? httpAllowedHost : undefined;
}

async function listenMetricsFace(
  config: Config,
  context: FaceContext,
  metrics: ServiceMetrics,
): Promise<Face> {
  const { listenMetrics } = await import("./metrics/server.js");
  const { metricsAddress: host, metricsPort: port } = config;
  const server = await listenMetrics({
    host,
    port,
    render: () => metrics.render(context),
    reportFault: (error) =>
      context.reportFault({ requestId: context.nextRequestId(), protocol: "http", error }),
  }).catch((error: unknown) => {
    throw new ListenError("metrics", host, port, error);
  });
  return face("metrics", "Metrics Service", server);
}

function face(
  name: FaceName,
  title: string,
  server: { readonly address: Address | null; close(deadline: AbortSignal): Promise<void> },
  socketPath?: string,
): Face {
  const { address } = server;
  return {
    name,
    title,
    where: [
      ...(address === null ? [] : [formatAddress(address.host, address.port)]),
      ...(socketPath === undefined ? [] : [formatSocket(socketPath)]),
    ],
    address,
    close: (deadline) => server.close(deadline),
  };
}
