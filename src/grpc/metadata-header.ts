import type { Metadata } from "@grpc/grpc-js";

/** The value of a metadata key, in lower case, that is there once and is text; else undefined. */
export function metadataHeader(metadata: Metadata, key: string): string | undefined {
  const [value, ...others] = metadata.get(key);
  return typeof value === "string" && others.length === 0 ? value : undefined;
}
