import { orAborted } from "../../core/abort.js";
import type { FaceContext } from "../../core/face-context.js";
import { maySee } from "../../core/policy.js";
import * as wire from "../gen/cudashm/v1/registry.js";
import type { UnaryMethod } from "../unary-call.js";
import { encodeMessage } from "../wire.js";

const { getServer, listDevices } = wire.RegistryService;

/** Which run of which service this is. */
export function createGetServer({ info, registry }: FaceContext): UnaryMethod<wire.GetServerRequest> {
  const { name, version, instanceId, epoch } = info;
  const { policy } = registry;
  return {
    path: getServer.path,
    operation: "serverState",
    request: wire.GetServerRequest,
    handle(_request, call) {
      const { pending, adopted, refused } = registry.adoption;
      return encodeMessage(wire.GetServerResponse, {
        name,
        version,
        instanceId,
        epoch,
        revision: registry.revision,
        access: policy.access,
        unregisterAll: policy.unregisterAll,
        adoption: {
          pending: BigInt(pending),
          adopted: BigInt(adopted),
          refused: refused.filter((refusal) => maySee(policy, call, refusal)),
        },
      });
    },
  };
}

/** The devices there are. */
export function createListDevices({ registry }: FaceContext): UnaryMethod<wire.ListDevicesRequest> {
  return {
    path: listDevices.path,
    operation: "listDevices",
    request: wire.ListDevicesRequest,
    async handle(_request, call) {
      const devices = await orAborted(registry.devices(), call.signal);
      return encodeMessage(wire.ListDevicesResponse, {
        devices: devices.map((device) => ({
          ordinal: BigInt(device.ordinal),
          uuid: device.uuid,
          pciBusId: device.pciBusId,
          name: device.name,
          totalBytes: device.totalBytes,
          freeBytes: device.freeBytes ?? undefined,
          mappedBytes: device.mappedBytes,
          regions: BigInt(device.regions),
        })),
      });
    },
  };
}
