import type { WatchEvent } from "../../core/change-history.js";
import type { FaceContext } from "../../core/face-context.js";
import { assertRegionName } from "../../core/region-name.js";
import * as wire from "../gen/cudashm/v1/registry.js";
import type { ServerStreamMethod } from "../server-stream.js";
import { encodeMessage } from "../wire.js";
import { changeKinds, reasons, regionToWire, textFromWire } from "./convert.js";

/** Every change, as fast as it is read. */
export function createWatch({ registry, info }: FaceContext): ServerStreamMethod<wire.WatchRequest> {
  return {
    path: wire.RegistryService.watch.path,
    operation: "watchRegions",
    request: wire.WatchRequest,
    async *handle({ fromRevision, name }, call) {
      if (name !== "") assertRegionName(name);
      for await (const event of registry.watch({ fromRevision, name: textFromWire(name) }, call)) {
        yield encodeMessage(wire.WatchResponse, { event: eventToWire(event, info) });
      }
    },
  };
}

function eventToWire(
  event: WatchEvent,
  { instanceId, epoch }: FaceContext["info"],
): wire.WatchResponse["event"] {
  switch (event.kind) {
    case "start":
      return { $case: "start", value: { instanceId, epoch, revision: event.revision } };
    case "gap":
      return { $case: "gap", value: { fromRevision: event.from, toRevision: event.to } };
    case "change": {
      const { kind, reason, revision, region } = event.change;
      const value = {
        kind: changeKinds[kind],
        reason: reasons[reason],
        revision,
        region: regionToWire(region),
      };
      return { $case: "change", value };
    }
  }
}
