import { regionName } from "./arguments.js";

/** Where the product's shared memory API lives, and so the baselines'. */
export const cudaPath = "/v2/cudasharedmemory";
const contentsStart = "/v1/regions/";

export function contentsPath(name: string): string {
  return `${contentsStart}${name}/contents`;
}

export function isContentsPath(path: string): boolean {
  return path.startsWith(contentsStart);
}

/** The body of a register, of which the baselines check nothing. */
export interface RegisterBody {
  readonly raw_handle: { readonly b64: string };
  readonly device_id: number;
  readonly byte_size: number;
}

/** What `name` and `call` are in `/v2/cudasharedmemory/region/{name}/{call}`. */
export function splitRegionPath(path: string): { readonly name: string; readonly call: string } {
  const end = path.lastIndexOf("/");
  return { name: path.slice(cudaPath.length + "/region/".length, end), call: path.slice(end + 1) };
}

/** The status of one region as the product answers it. */
export function statusOf(name: string) {
  return { name, device_id: 0, byte_size: 4096 };
}

/** The status of every region of a service that has so many. */
export function statusesOf(count: number) {
  return Array.from({ length: count }, (_, index) => statusOf(regionName(index)));
}
