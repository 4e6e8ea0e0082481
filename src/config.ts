import { type OptionRow, optionRows } from "./config/help.js";
import {
  boolean,
  hostAddress,
  integer,
  type OptionValues,
  oneOf,
  optional,
  port,
  text,
} from "./config/option.js";
import { type Environment, readOptions } from "./config/read-options.js";

// Node's timers take at most this many milliseconds and fire at once beyond it.
const maxTimerMs = 2 ** 31 - 1;
const grpcJsLacksIt = "the gRPC library has no such setting";

/** The driver options, shared by every command that loads one. */
export const driverOptions = {
  driver: {
    flag: "driver",
    kind: oneOf("auto", "cuda", "emulated"),
    default: "auto",
    group: "CUDA driver",
    help: "cuda: NVIDIA's libcuda.so.1. emulated: our own on host memory, for machines with no GPU. auto: cuda where it loads and finds a device, else emulated with a warning.",
  },
  driverLibrary: {
    flag: "driver-library",
    kind: optional(text("PATH")),
    default: null,
    group: "CUDA driver",
    help: "Load this file in place of the driver library chosen by --driver.",
  },
} as const;

/** Every option of the service: flag, type, default and help in one place. Variables follow from the flags. */
export const serveOptions = {
  allowHttp: {
    flag: "allow-http",
    kind: boolean,
    default: true,
    group: "HTTP",
    help: "Serve over HTTP.",
  },
  httpAddress: {
    flag: "http-address",
    kind: hostAddress,
    default: "127.0.0.1",
    group: "HTTP",
    help: "Where HTTP listens. Anyone who reaches it can register and unregister: keep it off open networks.",
  },
  httpPort: {
    flag: "http-port",
    kind: port,
    default: 8000,
    group: "HTTP",
    help: "Port of HTTP; 0 takes a free one, which the start-up line tells.",
  },
  httpMaxInputSize: {
    flag: "http-max-input-size",
    kind: integer(1, 2 ** 28, "BYTES"),
    default: 2 ** 20,
    group: "HTTP",
    help: "Largest JSON request body.",
  },
  allowContents: {
    flag: "allow-contents",
    kind: boolean,
    default: false,
    group: "HTTP",
    help: "Serve GET and PUT /v1/regions/{name}/contents, which read and write registered GPU memory.",
  },
  allowGrpc: {
    flag: "allow-grpc",
    kind: boolean,
    default: true,
    group: "gRPC",
    help: "Serve over gRPC.",
  },
  grpcAddress: {
    flag: "grpc-address",
    kind: hostAddress,
    default: "127.0.0.1",
    group: "gRPC",
    help: "Where gRPC listens.",
  },
  grpcPort: {
    flag: "grpc-port",
    kind: port,
    default: 8001,
    group: "gRPC",
    help: "Port of gRPC; 0 takes a free one, which the start-up line tells.",
  },
  grpcKeepaliveTime: {
    flag: "grpc-keepalive-time",
    kind: integer(1, maxTimerMs, "MS"),
    default: 7_200_000,
    group: "gRPC",
    help: "Milliseconds of silence after which a client is pinged.",
  },
  grpcKeepaliveTimeout: {
    flag: "grpc-keepalive-timeout",
    kind: integer(1, maxTimerMs, "MS"),
    default: 20_000,
    group: "gRPC",
    help: "Milliseconds a ping may stay unanswered before the connection is closed.",
  },
  grpcKeepalivePermitWithoutCalls: {
    flag: "grpc-keepalive-permit-without-calls",
    kind: boolean,
    default: false,
    group: "gRPC",
    help: "Ping clients that have no call open.",
    withoutEffect: `${grpcJsLacksIt} for servers`,
  },
  grpcHttp2MaxPingsWithoutData: {
    flag: "grpc-http2-max-pings-without-data",
    kind: integer(0, maxTimerMs),
    default: 2,
    group: "gRPC",
    help: "Pings sent with no data in between.",
    withoutEffect: grpcJsLacksIt,
  },
  grpcHttp2MinRecvPingIntervalWithoutData: {
    flag: "grpc-http2-min-recv-ping-interval-without-data",
    kind: integer(0, maxTimerMs, "MS"),
    default: 300_000,
    group: "gRPC",
    help: "Milliseconds a client must leave between pings.",
    withoutEffect: `${grpcJsLacksIt}, clients may ping as often as they like`,
  },
  grpcHttp2MaxPingStrikes: {
    flag: "grpc-http2-max-ping-strikes",
    kind: integer(0, maxTimerMs),
    default: 2,
    group: "gRPC",
    help: "Pings that come too early before a client is sent away.",
    withoutEffect: `${grpcJsLacksIt}, no client is sent away for its pings`,
  },
  ...driverOptions,
  contextLingerSecs: {
    flag: "context-linger-secs",
    kind: integer(0, 2_000_000, "SECONDS"),
    default: 30,
    group: "CUDA driver",
    help: "How long a device's CUDA context outlives the last region on it; 0 releases it at once.",
  },
  allowClientShm: {
    flag: "allow-client-shm",
    kind: boolean,
    default: true,
    group: "Service",
    help: "Let clients register memory.",
  },
  exitTimeoutSecs: {
    flag: "exit-timeout-secs",
    kind: integer(1, 2_000_000, "SECONDS"),
    default: 30,
    group: "Service",
    help: "How long a stop may take before the process ends with code 1.",
  },
  id: {
    flag: "id",
    kind: text("NAME"),
    default: "cudashm",
    group: "Service",
    help: "The name the service tells of itself.",
  },
  logInfo: {
    flag: "log-info",
    kind: boolean,
    default: true,
    group: "Service",
    help: "Log start, stop and every change of the registry; false leaves warnings and errors.",
  },
  logVerbose: {
    flag: "log-verbose",
    kind: integer(0, 9),
    default: 0,
    group: "Service",
    help: "1 and more log the steps of start and stop too.",
  },
} as const;

/** How the service is to run. Frozen. */
export type Config = OptionValues<typeof serveOptions>;

/** Reads the service's configuration. Throws one UsageError with every problem there is. */
export function loadConfig(
  args: readonly string[],
  env: Environment,
): { config: Config; warnings: readonly string[] } {
  const { values, warnings } = readOptions(serveOptions, args, env, crossCheck);
  return { config: values, warnings: [...warnings, ...unknownVariables(env)] };
}

function crossCheck(config: Config): string[] {
  if (!config.allowHttp && !config.allowGrpc) {
    return ["--allow-http and --allow-grpc are both false: nothing would be served; leave one of them on"];
  }
  const clash =
    config.allowHttp &&
    config.allowGrpc &&
    config.httpPort === config.grpcPort &&
    config.httpPort !== 0 &&
    config.httpAddress === config.grpcAddress;
  return clash ? [`--http-port and --grpc-port are both ${config.httpPort}: give them different ports`] : [];
}

/**
 * A mistyped variable is worth a warning and no more: Kubernetes puts CUDASHM_SERVICE_HOST, CUDASHM_PORT and
 * their like into every container when there is a service of that name.
 */
function unknownVariables(env: Environment): string[] {
  const known = new Set(optionRows(serveOptions).map((row) => row.env));
  return Object.keys(env)
    .filter((name) => name.startsWith("CUDASHM_") && !known.has(name))
    .filter((name) => !/^CUDASHM_(EMULATED_|SERVICE_|PORT$|PORT_)/.test(name))
    .map((name) => `${name} is no variable of this service and has no effect`);
}

/** The README's table of flags. */
export function configRows(): readonly OptionRow[] {
  return optionRows(serveOptions);
}
