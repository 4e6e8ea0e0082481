import type { EncodableRegion, RegionEncoding } from "../core/encoded-regions.js";

const nothing = Buffer.from("[");
const end = Buffer.from("]");

/** The answer of a status call: compact, in this key order, every digit of a 64-bit number kept. */
export function encodeStatuses(regions: readonly EncodableRegion[]): string {
  return `[${encodeEach(regions)}]`;
}

/** The same in parts. Each begins with the comma that is before its regions. */
export const statusJson: RegionEncoding = {
  encode: (regions) => Buffer.from(`,${encodeEach(regions)}`),
  join(parts) {
    const json = Buffer.concat(parts.length === 0 ? [nothing, end] : [...parts, end]);
    json.write("[");
    return json;
  },
};

function encodeEach(regions: readonly EncodableRegion[]): string {
  let json = "";
  for (const { name, deviceId, byteSize } of regions) {
    if (json !== "") json += ",";
    json += `{"name":${JSON.stringify(name)},"device_id":${deviceId},"byte_size":${byteSize}}`;
  }
  return json;
}
