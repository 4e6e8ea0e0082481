import { accessOptions, accessProblems } from "./config/access-options.js";
import { placeProblems, placeWarnings } from "./config/check-places.js";
import { doctorOptions } from "./config/doctor-options.js";
import { serviceDriverOptions } from "./config/driver-options.js";
import { grpcOptions } from "./config/grpc-options.js";
import { healthOptions } from "./config/health-options.js";
import { type OptionRow, optionRows } from "./config/help.js";
import { httpOptions } from "./config/http-options.js";
import { lifecycleOptions, lifecycleProblems } from "./config/lifecycle-options.js";
import { logOptions } from "./config/log-options.js";
import { metricsOptions } from "./config/metrics-options.js";
import type { OptionValues } from "./config/option.js";
import { type Environment, readOptions } from "./config/read-options.js";
import { serviceOptions } from "./config/service-options.js";
import { socketOptions } from "./config/socket-options.js";
import { tlsOptions } from "./config/tls-options.js";

/** Every option of the service: flag, type, default and help in one place. Variables follow from the flags. */
export const serveOptions = {
  ...httpOptions,
  ...doctorOptions,
  ...grpcOptions,
  ...socketOptions,
  ...tlsOptions,
  ...metricsOptions,
  ...accessOptions,
  ...lifecycleOptions,
  ...serviceDriverOptions,
  ...healthOptions,
  ...serviceOptions,
  ...logOptions,
} as const;

/** How the service is to run. Frozen. */
export type Config = OptionValues<typeof serveOptions>;

/** Reads the service's configuration. Throws one UsageError with every problem there is. */
export function loadConfig(
  args: readonly string[],
  env: Environment,
): { config: Config; warnings: readonly string[] } {
  const { values, warnings } = readOptions(serveOptions, args, env, crossCheck);
  return { config: values, warnings: [...warnings, ...placeWarnings(values), ...unknownVariables(env)] };
}

function crossCheck(config: Config): string[] {
  if (!config.allowHttp && !config.allowGrpc) {
    return ["--allow-http and --allow-grpc are both false: nothing would be served; leave one of them on"];
  }
  const listeners = [
    {
      name: "http",
      on: config.allowHttp && config.httpTcp,
      port: config.httpPort,
      address: config.httpAddress,
    },
    {
      name: "grpc",
      on: config.allowGrpc && config.grpcTcp,
      port: config.grpcPort,
      address: config.grpcAddress,
    },
    { name: "metrics", on: config.allowMetrics, port: config.metricsPort, address: config.metricsAddress },
  ].filter(({ on, port }) => on && port !== 0);
  const clashes = listeners.flatMap((one, i) =>
    listeners
      .slice(i + 1)
      .filter((other) => other.port === one.port && other.address === one.address)
      .map(
        (other) =>
          `--${one.name}-port and --${other.name}-port are both ${one.port}: give them different ports`,
      ),
  );
  return [...clashes, ...placeProblems(config), ...accessProblems(config), ...lifecycleProblems(config)];
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
