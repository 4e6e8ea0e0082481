/** Groups of calls that can be restricted; Triton's words, of which this service serves the first three. */
export const apiCategories = [
  "health",
  "metadata",
  "shared-memory",
  "inference",
  "model-config",
  "model-repository",
  "statistics",
  "trace",
  "logging",
] as const;

export type ApiCategory = (typeof apiCategories)[number];
