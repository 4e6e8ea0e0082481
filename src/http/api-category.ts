import type { ApiCategory } from "../core/api-category.js";
import type { Operation } from "./operation.js";

/** The group of calls that an operation is restricted with. */
export function apiCategory({ path, tag }: Operation): ApiCategory {
  if (path.startsWith("/v2/health/")) return "health";
  return tag === "Service" ? "metadata" : "shared-memory";
}
