import type { Config } from "./config.js";
import type { FaceContext } from "./core/face-context.js";
import { type FaceName, formatAddress, ListenError } from "./listen-error.js";
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
  /** `host:port` with the real port. */
  readonly where: string;
  readonly address: Address;
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
  context: FaceContext,
  metrics: ServiceMetrics | null,
): Promise<Faces> {
  const attempts = await Promise.allSettled([
    ...(metrics === null ? [] : [listenMetricsFace(config, context, metrics)]),
    ...(config.allowGrpc ? [listenGrpcFace(config, context)] : []),
    ...(config.allowHttp ? [listenHttpFace(config, context)] : []),
  ]);
  const faces = attempts.flatMap((attempt) => (attempt.status === "fulfilled" ? [attempt.value] : []));
  const failed = attempts.find((attempt) => attempt.status === "rejected");
  if (failed === undefined) return faces;
  await Promise.all(faces.map((face) => face.close(AbortSignal.abort())));
  throw failed.reason;
}

// Each face is imported only if it is switched on: their libraries are most of the start-up time.
async function listenGrpcFace(config: Config, context: FaceContext): Promise<Face> {
  const { listenGrpc } = await import("./grpc/server.js");
  const { grpcAddress: host, grpcPort: port } = config;
  const server = await listenGrpc(context, {
    host,
    port,
    keepaliveTimeMs: config.grpcKeepaliveTime,
    keepaliveTimeoutMs: config.grpcKeepaliveTimeout,
  }).catch((error: unknown) => {
    throw new ListenError("grpc", host, port, error);
  });
  return face("grpc", "GRPCInferenceService", host, server);
}

async function listenHttpFace(config: Config, context: FaceContext): Promise<Face> {
  const [{ createHttpApp }, { listenHttp }] = await Promise.all([
    import("./http/app.js"),
    import("./http/server.js"),
  ]);
  const { httpAddress: host, httpPort: port } = config;
  const app = createHttpApp(context, {
    allowContents: config.allowContents,
    maxInputSize: config.httpMaxInputSize,
  });
  const server = await listenHttp(app, { host, port }).catch((error: unknown) => {
    throw new ListenError("http", host, port, error);
  });
  return face("http", "HTTPService", host, server);
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
  return face("metrics", "Metrics Service", host, server);
}

function face(
  name: FaceName,
  title: string,
  host: string,
  server: { readonly address: Address | null; close(deadline: AbortSignal): Promise<void> },
): Face {
  const address = { host, port: server.address?.port ?? 0 };
  return {
    name,
    title,
    where: formatAddress(host, address.port),
    address,
    close: (deadline) => server.close(deadline),
  };
}
