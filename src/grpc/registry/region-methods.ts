import { RegistryError } from "../../core/errors.js";
import { inSlices } from "../../core/event-loop.js";
import { clientShmDisabledText, type FaceContext } from "../../core/face-context.js";
import { invalidArguments } from "../../core/refusals.js";
import type { RegionStatus } from "../../core/region.js";
import { assertRegionName } from "../../core/region-name.js";
import * as wire from "../gen/cudashm/v1/registry.js";
import type { UnaryMethod } from "../unary-call.js";
import { encodeMessage } from "../wire.js";
import { queryFromWire, regionToWire, registerRequestFromWire } from "./convert.js";
import { durationFromWire } from "./durations.js";

const { get, list, register, renew, unregister } = wire.RegistryService;

/** One region. */
export function createGet({ registry }: FaceContext): UnaryMethod<wire.GetRequest> {
  return {
    path: get.path,
    operation: "getRegion",
    request: wire.GetRequest,
    messageFields: [2],
    async handle({ name, wait }, call) {
      assertRegionName(name);
      const waitMs = durationFromWire("wait", wait);
      return encodeRegion(
        waitMs === undefined ? registry.status(name, call) : await registry.waitFor(name, waitMs, call),
      );
    },
  };
}

/** A page of the regions that match. */
export function createList({ registry }: FaceContext): UnaryMethod<wire.ListRequest> {
  return {
    path: list.path,
    operation: "listRegions",
    request: wire.ListRequest,
    async handle(request, call) {
      const { regions, nextPageToken, revision } = await registry.list(queryFromWire(request), call);
      // Messages one after the other are one message, with the regions of all.
      const parts: Buffer[] = [];
      await inSlices(regions, (region) => {
        const one = { regions: [regionToWire(region)], nextPageToken: "", revision: 0n };
        parts.push(encodeMessage(wire.ListResponse, one));
        return true;
      });
      parts.push(encodeMessage(wire.ListResponse, { regions: [], nextPageToken, revision }));
      return Buffer.concat(parts);
    },
  };
}

/** Opens a handle. */
export function createRegister({ registry, allowClientShm }: FaceContext): UnaryMethod<wire.RegisterRequest> {
  return {
    path: register.path,
    operation: "registerRegion",
    request: wire.RegisterRequest,
    messageFields: [7, 8, 9],
    refuse: (problem) => invalidArguments("", problem),
    async handle(request, call) {
      if (!allowClientShm) throw new RegistryError("UNIMPLEMENTED", clientShmDisabledText);
      return encodeRegion(await registry.register(registerRequestFromWire(request), call));
    },
  };
}

/** Starts a lease anew. */
export function createRenew({ registry }: FaceContext): UnaryMethod<wire.RenewRequest> {
  return {
    path: renew.path,
    operation: "renewRegion",
    request: wire.RenewRequest,
    messageFields: [2],
    async handle({ name, lease, generation }, call) {
      assertRegionName(name);
      const leaseMs = durationFromWire("lease", lease);
      return encodeRegion(await registry.renew(name, { leaseMs, generation }, call));
    },
  };
}

/** Closes a region for whoever wants to know when its memory is free. */
export function createUnregister({ registry }: FaceContext): UnaryMethod<wire.UnregisterRequest> {
  return {
    path: unregister.path,
    operation: "releaseRegion",
    request: wire.UnregisterRequest,
    messageFields: [3],
    async handle({ name, generation, wait, force }, call) {
      assertRegionName(name);
      const waitMs = durationFromWire("wait", wait);
      const { isClosed, pins } = await registry.release(name, { waitMs, isForced: force, generation }, call);
      return encodeMessage(wire.UnregisterResponse, { closed: isClosed, pins: BigInt(pins) });
    },
  };
}

function encodeRegion(region: RegionStatus): Buffer {
  return encodeMessage(wire.Region, regionToWire(region));
}
