import { type JsonSchema, regionName, uint64 } from "../json-schema.js";
import { regionStates } from "./words.js";

const inQuery = { in: "query", required: false } as const;

/** Parameters of the operations under /v1 that the document names. */
export const regionParameters = {
  wait: {
    ...inQuery,
    name: "wait",
    description: "How long to wait, at most 5 minutes: a whole number and ms, s or m",
    schema: { type: "string", pattern: "^[0-9]{1,9}(ms|s|m)$", examples: ["5s", "1500ms", "2m"] },
  },
  force: {
    ...inQuery,
    name: "force",
    description: "Whether to take the region, after the wait, from whoever still uses it",
    schema: { type: "boolean", default: false },
  },
  generation: {
    ...inQuery,
    name: "generation",
    description: "The generation that is meant; whichever there is unless given",
    schema: uint64,
  },
  owner: {
    ...inQuery,
    name: "owner",
    description: "Only regions of this owner; every owner's if it is empty, as with all texts here",
    schema: { type: "string" },
  },
  device: {
    ...inQuery,
    name: "device",
    description: "Only regions on the device of this ordinal or UUID",
    schema: { type: "string" },
  },
  state: {
    ...inQuery,
    name: "state",
    description: "Only regions in this state",
    schema: { type: "string", enum: regionStates },
  },
  labelPrefix: {
    ...inQuery,
    name: "label_prefix",
    description: "Only regions of which some label, written `key=value`, begins so",
    schema: { type: "string" },
  },
  pageSize: {
    ...inQuery,
    name: "page_size",
    description: "Most regions in the answer",
    schema: { type: "integer", minimum: 1, maximum: 1000, default: 100 },
  },
  pageToken: {
    ...inQuery,
    name: "page_token",
    description: "The `next_page_token` of the page before",
    schema: { type: "string" },
  },
  fromRevision: {
    ...inQuery,
    name: "from_revision",
    description: "The first revision wanted; changes from now on unless given",
    schema: uint64,
  },
  region: {
    ...inQuery,
    name: "region",
    description: "Only changes of the region of this name",
    schema: regionName,
  },
  lastEventId: {
    name: "Last-Event-ID",
    in: "header",
    required: false,
    description:
      "The id of the last event that came, to go on after it; it outweighs from_revision. Browsers send it by themselves.",
    schema: { type: "string", pattern: "^.+/[0-9]+$" },
  },
} as const satisfies Readonly<Record<string, JsonSchema>>;
