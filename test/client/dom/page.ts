import {
  type CudaSharedMemoryClient,
  CudaSharedMemoryError,
  type CudaSharedMemoryErrorCode,
  createCudaSharedMemoryClient,
  EventsEndedError,
  type Region,
  type RegionStatus,
  type RegistryEvent,
} from "../../../src/client/index.js";

/** What a page does with the client; compiled for browsers alone, with no types of Node's. */
export async function showRegions(baseUrl: URL, show: (text: string) => void): Promise<bigint> {
  const client: CudaSharedMemoryClient = createCudaSharedMemoryClient({ baseUrl, signal: undefined });
  try {
    await client.register("r", { rawHandle: new Uint8Array(64), deviceId: 0, byteSize: 64n });
    const regions: readonly RegionStatus[] = await client.statuses({ signal: AbortSignal.timeout(1000) });
    const bytes: Uint8Array = await client.readContents("r", { offset: 0, byteSize: 4n });
    await client.writeContents("r", bytes, { offset: 60n });
    return regions.reduce((sum, region) => sum + region.byteSize, 0n);
  } catch (error) {
    if (!(error instanceof CudaSharedMemoryError)) throw error;
    const code: CudaSharedMemoryErrorCode = error.code;
    show(`${code} ${error.httpStatus ?? "no answer"} ${error.requestId ?? ""}: ${error.message}`);
    return 0n;
  } finally {
    await client.unregister("r");
  }
}

/** How a page follows what there is. */
export async function follow(
  client: CudaSharedMemoryClient,
  signal: AbortSignal,
): Promise<string | null | undefined> {
  const regions = new Map<string, Region>();
  for await (const region of client.regions({ state: "ready", signal })) regions.set(region.name, region);
  try {
    for await (const event of client.events({ signal })) {
      const seen: RegistryEvent = event;
      if (seen.type === "change" && seen.kind === "unregistered") regions.delete(seen.region.name);
    }
  } catch (error) {
    return error instanceof EventsEndedError ? error.lastEventId : undefined;
  }
  return undefined;
}

// @ts-expect-error Everything is unregistered by a call of its own, never by a name left out.
export const wipe = (client: CudaSharedMemoryClient) => client.unregister();

// @ts-expect-error Sizes are exact, so they are no plain numbers.
export const halved = (region: RegionStatus): number => region.byteSize / 2;
