import { json, named, type Operation } from "../operation.js";
import { eventsContentType } from "./event-text.js";
import { regionsPath } from "./region-path.js";

const regionPath = `${regionsPath}/{region_name}`;

const regionAnswer = (description: string) => ({ description, body: json(named("Region")) });
const thatRegion = {
  regionName: "$request.path.region_name",
  operations: ["getRegion", "renewRegion", "checksumRegion", "releaseRegion"],
} as const;

/** The operations under /v1 that are about regions in full, and the service as their keeper. */
export const regionOperations = {
  serverState: {
    method: "GET",
    path: "/v1",
    tag: "Service",
    summary:
      "Tell which run of the service this is, whose regions may be changed by whom, and what was taken up",
    success: { description: "The service, as it is at this moment", body: json(named("ServerState")) },
    errors: ["INVALID_ARGUMENT"],
  },
  listDevices: {
    method: "GET",
    path: "/v1/devices",
    tag: "Service",
    summary: "List the devices, and how much of each is mapped here",
    success: { description: "The devices", body: json(named("DeviceList")) },
    errors: ["INVALID_ARGUMENT", "UNAVAILABLE"],
  },
  listRegions: {
    method: "GET",
    path: regionsPath,
    tag: "Regions",
    summary: "List the regions that match, sorted by the bytes of their names, page by page",
    parameters: ["owner", "device", "state", "labelPrefix", "pageSize", "pageToken"],
    success: { description: "A page of regions", body: json(named("RegionPage")) },
    next: { ...thatRegion, regionName: "$response.body#/regions/0/name" },
    errors: ["INVALID_ARGUMENT"],
  },
  getRegion: {
    method: "GET",
    path: regionPath,
    tag: "Regions",
    summary: "Show one region, or wait until there is a ready one of that name",
    parameters: ["regionName", "wait"],
    success: regionAnswer("The region"),
    errors: ["INVALID_ARGUMENT", "NOT_FOUND", "DEADLINE_EXCEEDED", "UNAVAILABLE"],
  },
  registerRegion: {
    method: "PUT",
    path: regionPath,
    tag: "Regions",
    summary: "Open a CUDA IPC handle and keep the memory mapped under a name; the same again changes nothing",
    parameters: ["regionName"],
    body: { ...json(named("RegionRegistration")), required: true },
    success: regionAnswer("The region, registered now or before; of a dry run what it would be"),
    next: thatRegion,
    errors: [
      "INVALID_ARGUMENT",
      "ALREADY_EXISTS",
      "FAILED_PRECONDITION",
      "PERMISSION_DENIED",
      "RESOURCE_EXHAUSTED",
      "UNIMPLEMENTED",
      "UNAVAILABLE",
    ],
  },
  releaseRegion: {
    method: "DELETE",
    path: regionPath,
    tag: "Regions",
    summary:
      "Unregister a region: nobody begins to use it any more. With a wait, answered once its memory can be freed; any body is ignored",
    parameters: ["regionName", "wait", "force", "generation"],
    success: {
      description: "Unregistered; its mapping is closed, or will be when those who use it let go",
      body: json(named("Release")),
    },
    errors: [
      "INVALID_ARGUMENT",
      "NOT_FOUND",
      "PERMISSION_DENIED",
      "FAILED_PRECONDITION",
      "DEADLINE_EXCEEDED",
      "UNAVAILABLE",
    ],
  },
  renewRegion: {
    method: "POST",
    path: `${regionPath}/renew`,
    tag: "Regions",
    summary: "Start the lease of a region anew",
    parameters: ["regionName"],
    body: { ...json(named("Renewal")), required: false },
    success: regionAnswer("The region with its new lease"),
    errors: ["INVALID_ARGUMENT", "NOT_FOUND", "PERMISSION_DENIED", "FAILED_PRECONDITION", "UNAVAILABLE"],
  },
  checksumRegion: {
    method: "GET",
    path: `${regionPath}/checksum`,
    tag: "Contents",
    summary: "Tell the CRC-32C of bytes of a region, without sending them",
    parameters: ["regionName", "offset", "byteSize"],
    success: { description: "The checksum", body: json(named("Checksum")) },
    errors: [
      "PERMISSION_DENIED",
      "INVALID_ARGUMENT",
      "NOT_FOUND",
      "OUT_OF_RANGE",
      "FAILED_PRECONDITION",
      "RESOURCE_EXHAUSTED",
      "UNAVAILABLE",
    ],
  },
  watchRegions: {
    method: "GET",
    path: "/v1/events",
    tag: "Regions",
    summary:
      "Tell every change as it happens, as server-sent events: hello first, then change, gap where changes are no longer known, and error before an end",
    parameters: ["fromRevision", "region", "lastEventId"],
    success: {
      description:
        "Events, until the client leaves. The data of each is JSON: HelloEvent, ChangeEvent, GapEvent or ErrorEvent. A line with a colon alone, every 15 s of quiet, says nothing",
      body: { contentType: eventsContentType, schema: { type: "string" } },
    },
    errors: ["INVALID_ARGUMENT", "OUT_OF_RANGE", "RESOURCE_EXHAUSTED", "UNAVAILABLE"],
  },
} as const satisfies Readonly<Record<string, Operation>>;
