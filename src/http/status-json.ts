import type { RegionStatus } from "../core/region.js";
import type { RegionRegistry } from "../core/registry.js";

/** The answer of a status call: compact, in this key order, every digit of a 64-bit number kept. */
export function encodeStatuses(
  statuses: readonly Pick<RegionStatus, "name" | "deviceId" | "byteSize">[],
): string {
  let json = "[";
  for (const { name, deviceId, byteSize } of statuses) {
    if (json.length > 1) json += ",";
    json += `{"name":${JSON.stringify(name)},"device_id":${deviceId},"byte_size":${byteSize}}`;
  }
  return `${json}]`;
}

/** The status of every region, encoded once for each revision of the registry. */
export class StatusJson {
  readonly #registry: RegionRegistry;
  #revision: bigint | undefined;
  #json = "";

  constructor(registry: RegionRegistry) {
    this.#registry = registry;
  }

  current(): string {
    const { revision } = this.#registry;
    if (this.#revision !== revision) {
      this.#json = encodeStatuses(this.#registry.statuses());
      this.#revision = revision;
    }
    return this.#json;
  }
}
