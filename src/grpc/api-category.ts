import type { ApiCategory } from "../core/api-category.js";

const metadataMethods = new Set(["ServerMetadata", "GetServer", "ListDevices"]);

/** The group of calls that a method, by its path `/package.Service/Method`, is restricted with. */
export function apiCategory(path: string): ApiCategory {
  if (path.startsWith("/grpc.health.")) return "health";
  const method = path.slice(path.lastIndexOf("/") + 1);
  if (method === "ServerLive" || method === "ServerReady") return "health";
  return metadataMethods.has(method) ? "metadata" : "shared-memory";
}
