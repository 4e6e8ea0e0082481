import { orAborted } from "../../core/abort.js";
import type { FaceContext } from "../../core/face-context.js";
import { maySee } from "../../core/policy.js";
import { answerObject } from "../answers.js";
import type { Exchange } from "../exchange.js";
import { readQuery } from "./query.js";

/** Which run of which service this is, and the devices it has. */
export function createServerState({ info, registry, shutdown }: FaceContext) {
  const { name, version, instanceId, epoch } = info;
  const { policy } = registry;

  return {
    server(exchange: Exchange): Response {
      readQuery(exchange.query, []);
      const { pending, adopted, refused } = registry.adoption;
      return answerObject(exchange, {
        name,
        version,
        instance_id: instanceId,
        epoch,
        revision: registry.revision,
        access: policy.access,
        unregister_all: policy.unregisterAll,
        adoption: {
          pending,
          adopted,
          refused: refused
            .filter((refusal) => maySee(policy, exchange.caller, refusal))
            .map(({ name, generation, reason }) => ({ name, generation, reason })),
        },
      });
    },

    async devices(exchange: Exchange): Promise<Response> {
      readQuery(exchange.query, []);
      const devices = await orAborted(registry.devices(), exchange.signal(shutdown));
      return answerObject(exchange, {
        devices: devices.map((device) => ({
          ordinal: device.ordinal,
          uuid: device.uuid,
          pci_bus_id: device.pciBusId,
          name: device.name,
          total_bytes: device.totalBytes,
          free_bytes: device.freeBytes,
          mapped_bytes: device.mappedBytes,
          regions: device.regions,
        })),
      });
    },
  };
}
