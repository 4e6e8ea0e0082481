import type { Metadata } from "@grpc/grpc-js";

/**
 * The value of a metadata key, in lower case, as a header source has it; bytes as UTF-8 text. Node keeps the first of
 * two `authorization` before anything of ours sees them, and grpc-js keeps no value that is not printable ASCII.
 */
export function metadataHeader(metadata: Metadata, key: string): string | undefined {
  const values = metadata.get(key);
  return values.length === 0 ? undefined : values.join(", ");
}
