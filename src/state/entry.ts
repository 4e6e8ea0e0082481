import type { RegionRecord } from "../core/journal.js";
import { object, recordFromJson, recordToJson, wide } from "./record-codec.js";

/** Numbers that only grow, from one start of the service to the next. */
export interface Counters {
  /** Number of the start. */
  readonly epoch: bigint;
  /** The greatest that was given to a region. */
  readonly generation: bigint;
  /** No change has a greater one yet. */
  readonly revision: bigint;
}

/** What one line of the state file tells. */
export type Entry =
  | { readonly kind: "registered"; readonly record: RegionRecord; readonly replaces: bigint | null }
  | { readonly kind: "left"; readonly generation: bigint }
  | { readonly kind: "counters"; readonly counters: Counters };

/** The entry as the payload of a line. */
export function encodeEntry(entry: Entry): string {
  switch (entry.kind) {
    case "registered": {
      const replaces = entry.replaces === null ? {} : { replaces: String(entry.replaces) };
      return JSON.stringify({ registered: recordToJson(entry.record), ...replaces });
    }
    case "left":
      return JSON.stringify({ left: String(entry.generation) });
    case "counters": {
      const { epoch, generation, revision } = entry.counters;
      return JSON.stringify({
        counters: { epoch: String(epoch), generation: String(generation), revision: String(revision) },
      });
    }
  }
}

/** Throws if it is none that this version writes. The error can have parts of a handle in it. */
export function decodeEntry(payload: string): Entry {
  const fields = object(JSON.parse(payload));
  if ("registered" in fields) {
    const replaces = fields.replaces === undefined ? null : wide(fields.replaces);
    return { kind: "registered", record: recordFromJson(fields.registered), replaces };
  }
  if ("left" in fields) return { kind: "left", generation: wide(fields.left) };
  const { epoch, generation, revision } = object(fields.counters);
  return {
    kind: "counters",
    counters: { epoch: wide(epoch), generation: wide(generation), revision: wide(revision) },
  };
}
