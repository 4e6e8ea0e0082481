import type { WatchedChange } from "../../core/change-history.js";
import type { RegistryError } from "../../core/errors.js";
import { exactJson } from "../exact-json.js";
import { type Json, regionJson } from "./region-json.js";

/** What the HTML standard calls a stream of events. */
export const eventsContentType = "text/event-stream";

/** Says nothing, so that nobody takes a quiet stream for a dead one. */
export const keepAliveText = ":\n\n";

/** Where a reader is: which run of the service, and the last change that it knows. */
export interface EventId {
  readonly instanceId: string;
  readonly revision: bigint;
}

/** Changes that are no longer known, both ends included; after a restart they are of another run. */
export interface Gap {
  readonly from: bigint;
  readonly to: bigint;
  readonly restarted: boolean;
}

/** The first event: the run of the service, and its revision at this moment. */
export function helloText(id: EventId, epoch: bigint, revision: bigint): string {
  return eventText("hello", { instance_id: id.instanceId, epoch, revision }, id);
}

export function changeText(instanceId: string, { kind, reason, revision, region }: WatchedChange): string {
  const json = { kind, reason, revision, region: regionJson(region) };
  return eventText("change", json, { instanceId, revision });
}

export function gapText(instanceId: string, { from, to, restarted }: Gap): string {
  return eventText("gap", { from, to, restarted }, { instanceId, revision: to });
}

/** The last event. It has no id: what a reader knows does not change. */
export function errorText({ code, message }: RegistryError): string {
  return eventText("error", { code, error: message });
}

// JSON has no line end in it, so one line of data holds it.
function eventText(event: string, data: Json, id?: EventId): string {
  const line = id === undefined ? "" : `id: ${id.instanceId}/${id.revision}\n`;
  return `${line}event: ${event}\ndata: ${exactJson(data)}\n\n`;
}
