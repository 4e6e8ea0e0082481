import { maxRegionNameBytes } from "../core/region-name.js";
import { maxUint64 } from "./uint64.js";

/** A JSON Schema, as OpenAPI 3.1 takes it; a bigint where a number has more digits than a double keeps. */
export type JsonSchema = Readonly<Record<string, unknown>>;

export const uint64 = { type: "integer", format: "uint64", minimum: 0, maximum: maxUint64 } as const;

export const sizeInBytes = { ...uint64, minimum: 1 } as const;

export const regionName = {
  type: "string",
  minLength: 1,
  maxLength: maxRegionNameBytes,
  pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f]+$",
  not: { enum: [".", ".."] },
} as const;

export const base64Handle = {
  type: "string",
  format: "byte",
  description:
    "Base64 of the handle: 86 characters of the alphabet; every other character, line feeds and padding among them, is skipped",
  pattern: "^[^A-Za-z0-9+/]*([A-Za-z0-9+/][^A-Za-z0-9+/]*){86}$",
} as const;
