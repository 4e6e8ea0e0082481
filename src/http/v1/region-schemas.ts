import { httpStatuses } from "../errors.js";
import { base64Handle, type JsonSchema, sizeInBytes, uint64 } from "../json-schema.js";
import { changeKinds, changeReasons, protocols, regionStates } from "./words.js";

const text = { type: "string" } as const;
const time = { type: "string", format: "date-time" } as const;
const timeOrNull = { ...time, type: ["string", "null"] } as const;
const seconds = { type: "number", minimum: 1, maximum: 604_800, multipleOf: 0.001 } as const;
const count = { type: "integer", minimum: 0, maximum: 2 ** 31 - 1 } as const;

/** An object that has all of these members. */
function objectOf<Properties extends JsonSchema>(properties: Properties) {
  return { type: "object", required: Object.keys(properties), properties } as const;
}

/** Schemas of what is sent and answered under /v1. */
export const regionSchemas = {
  Exporter: {
    ...objectOf({
      pid: { type: "integer", minimum: 1, maximum: 2 ** 22 },
      start_time: { ...uint64, description: "Clock ticks since boot: field 22 of /proc/<pid>/stat" },
      boot_id: { ...text, description: "/proc/sys/kernel/random/boot_id", pattern: "^[\\w-]{1,64}$" },
      pid_namespace: { ...uint64, description: "Inode of /proc/<pid>/ns/pid" },
    }),
    description: "The process that owns the memory; all four are checked",
    additionalProperties: false,
  },
  Region: {
    ...objectOf({
      name: text,
      kind: { type: "string", enum: ["cuda"] },
      state: {
        type: "string",
        enum: regionStates,
        description:
          "`registering`: not there, of a dry run alone; `orphaned`: its exporter has exited; `draining`: unregistered, waits for whoever uses it; `close_failed`: the driver refused the close, unregister it again",
      },
      reason: { type: "string", enum: changeReasons, description: "Why it is in that state" },
      device_id: count,
      device_uuid: text,
      byte_size: sizeInBytes,
      offset: { ...uint64, description: "Bytes from the start of the allocation" },
      allocation_byte_size: { ...uint64, description: "Bytes of the whole allocation" },
      owner: { ...text, description: "`anonymous`, a token's name, or `session:` and an id" },
      session: { type: ["string", "null"], description: "Id of the session that it lives as long as" },
      protocol: { type: "string", enum: protocols },
      registered_at: time,
      last_used_at: { ...timeOrNull, description: "When its contents were last used" },
      lease_seconds: { ...seconds, type: ["number", "null"] },
      lease_expires_at: timeOrNull,
      pins: { ...count, description: "How many use it at this moment" },
      generation: { ...uint64, description: "Number of this registration; the name's next one has another" },
      fingerprint: {
        type: "string",
        pattern: "^[0-9a-f]{16}$",
        description: "Equal for regions on the same allocation",
      },
      labels: { type: "object", additionalProperties: text },
      exporter: { anyOf: [{ $ref: "#/components/schemas/Exporter" }, { type: "null" }] },
      verified: {
        type: "boolean",
        description: "False if it was taken up after a restart without proof that its exporter lives",
      },
    }),
    description: "Everything that is told of a region; what there is none of is null",
  },
  RegionPage: objectOf({
    regions: { type: "array", items: { $ref: "#/components/schemas/Region" } },
    next_page_token: { ...text, description: "Empty at the end" },
    revision: uint64,
  }),
  RegionRegistration: {
    type: "object",
    description: "A member given twice with two values is refused, and so is one that is not listed.",
    required: ["raw_handle", "byte_size"],
    anyOf: [{ required: ["device_id"] }, { required: ["device_uuid"] }],
    additionalProperties: false,
    properties: {
      raw_handle: {
        type: "object",
        description: "The 64 bytes of a cudaIpcMemHandle_t",
        required: ["b64"],
        additionalProperties: false,
        properties: { b64: base64Handle },
      },
      device_id: { ...uint64, description: "Device of the memory, as the service numbers them" },
      device_uuid: {
        ...text,
        description: "The same as nvidia-smi prints it; if both are given they must agree",
      },
      byte_size: { ...sizeInBytes, description: "Size of the region in bytes; digits alone, no 64.0 or 1e2" },
      offset: { ...uint64, default: 0, description: "Bytes from the start of the allocation" },
      lease_seconds: {
        ...seconds,
        description: "Unregistered after so long unless it is renewed; stays if left out",
      },
      exporter: { $ref: "#/components/schemas/Exporter" },
      labels: {
        type: "object",
        maxProperties: 32,
        propertyNames: { pattern: "^[A-Za-z0-9._/-]{1,63}$" },
        additionalProperties: {
          type: "string",
          maxLength: 255,
          pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f]*$",
        },
      },
      replace_generation: {
        ...uint64,
        description: "Takes the place of the region of that name, which must have this generation",
      },
      dry_run: {
        type: "boolean",
        default: false,
        description: "Open and close the memory, tell how large its allocation is, and register nothing",
      },
    },
  },
  Renewal: {
    type: "object",
    additionalProperties: false,
    properties: {
      lease_seconds: { ...seconds, description: "As long as it was unless given" },
      generation: { ...uint64, description: "The generation that is meant; whichever there is unless given" },
    },
  },
  Release: objectOf({
    closed: {
      type: "boolean",
      description:
        "Whether its mapping is closed, so that the memory can be freed; if not, that happens when its last user lets go or, if it has none, when the other regions on the same allocation go",
    },
    pins: { ...count, description: "How many still use it" },
  }),
  HelloEvent: {
    ...objectOf({
      instance_id: { ...text, description: "The run of the service" },
      epoch: uint64,
      revision: { ...uint64, description: "Number of the last change at this moment" },
    }),
    description: "The data of the first event of GET /v1/events",
  },
  ChangeEvent: {
    ...objectOf({
      kind: { type: "string", enum: changeKinds },
      reason: { type: "string", enum: changeReasons },
      revision: uint64,
      region: { $ref: "#/components/schemas/Region", description: "As it is after the change" },
    }),
    description: "The data of a `change`",
  },
  GapEvent: {
    ...objectOf({
      from: uint64,
      to: { ...uint64, description: "Less than `from` if there was none yet since a restart" },
      restarted: {
        type: "boolean",
        description: "Whether the Last-Event-ID was of another run of the service",
      },
    }),
    description:
      "The data of a `gap`: changes that are no longer known, both ends included; list the regions anew",
  },
  ErrorEvent: {
    ...objectOf({ code: { type: "string", enum: Object.keys(httpStatuses) }, error: text }),
    description: "The data of an `error`, the last event: why the stream ends",
  },
  Checksum: objectOf({
    crc32c: { type: "string", pattern: "^[0-9a-f]{8}$", description: "CRC-32C (Castagnoli)" },
    byte_size: uint64,
  }),
  DeviceList: objectOf({
    devices: {
      type: "array",
      items: objectOf({
        ordinal: count,
        uuid: text,
        pci_bus_id: text,
        name: text,
        total_bytes: uint64,
        free_bytes: {
          ...uint64,
          type: ["integer", "null"],
          description: "null while this service holds nothing there: asking would take GPU memory itself",
        },
        mapped_bytes: {
          ...uint64,
          description: "Bytes of the allocations mapped here, shared ones counted once",
        },
        regions: count,
      }),
    },
  }),
  ServerState: objectOf({
    name: text,
    version: text,
    instance_id: { ...text, description: "Another one for each start of the service" },
    epoch: { ...uint64, description: "Grows by one with each start on one state file; 1 without" },
    revision: { ...uint64, description: "Number of the last change" },
    access: { type: "string", enum: ["shared", "owner"] },
    unregister_all: { type: "string", enum: ["all", "own", "none"] },
    adoption: {
      ...objectOf({
        pending: { ...count, description: "Regions of which it is not known yet" },
        adopted: count,
        refused: {
          type: "array",
          description: "Those that were not taken up again, for callers who see everyone's regions",
          items: objectOf({ name: text, generation: uint64, reason: text }),
        },
      }),
      description: "How far the service is with the regions of the run before",
    },
  }),
} as const satisfies Readonly<Record<string, JsonSchema>>;
