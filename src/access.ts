import type { Config } from "./config.js";
import type { RegistryLimits } from "./core/capacity.js";
import type { FaceContext } from "./core/face-context.js";
import { Gate } from "./core/gate.js";
import { InFlight } from "./core/in-flight.js";
import { Restrictions } from "./core/restrictions.js";
import type { Log } from "./log.js";
import { TokenFile } from "./token-file.js";

/** Who may call. */
export interface Access {
  readonly gates: NonNullable<FaceContext["gates"]>;
  /** Keeps up with the token file until the returned function is called. */
  watch(): () => void;
}

/** Reads what says who may call. Rejects with a UsageError if the token file is no good. */
export async function openAccess(config: Config, log: Log): Promise<Access> {
  const tokens = config.tokenFile === null ? null : await TokenFile.open(config.tokenFile, log);
  const principals = tokens === null ? undefined : () => tokens.principals;
  const inFlight = config.maxRequestsInFlight === null ? undefined : new InFlight(config.maxRequestsInFlight);
  const gate = (restrictions: Restrictions | undefined) => new Gate({ restrictions, principals, inFlight });
  const { httpRestrictedApi: http, grpcRestrictedProtocol: grpc } = config;
  return {
    gates: {
      http: gate(http.length === 0 ? undefined : Restrictions.ofHttp(http)),
      grpc: gate(grpc.length === 0 ? undefined : Restrictions.ofGrpc(grpc)),
    },
    watch: () => tokens?.watch() ?? (() => {}),
  };
}

/** The limits of the registry, as they were configured. */
export function registryLimits(config: Config): RegistryLimits {
  const { maxRegions, maxDeviceBytes, maxOwnerBytes } = config;
  return {
    ...(maxRegions !== null && { maxRegions }),
    ...(maxDeviceBytes !== null && { maxDeviceBytes: BigInt(maxDeviceBytes) }),
    ...(maxOwnerBytes !== null && { maxOwnerBytes: BigInt(maxOwnerBytes) }),
  };
}
