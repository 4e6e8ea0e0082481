import type { Bench } from "./case.js";

/** Memory of the runner that servers are given the handles of. */
export interface ExportedMemory extends AsyncDisposable {
  /** Register bodies as JSON, one for each allocation. */
  readonly bodies: readonly string[];
  readonly handles: readonly Buffer[];
  readonly byteSize: number;
}

/** Allocates `count` times `byteSize` bytes on the emulated driver. */
export async function exportMemory(
  { driver }: Bench,
  count: number,
  byteSize = 4096,
): Promise<ExportedMemory> {
  const allocations: AsyncDisposable[] = [];
  const handles: Buffer[] = [];
  for (let made = 0; made < count; made++) {
    const allocation = await driver.allocate(0, BigInt(byteSize));
    allocations.push(allocation);
    handles.push(Buffer.from((await allocation.exportHandle()).exposeBytes()));
  }
  return {
    handles,
    byteSize,
    bodies: handles.map(
      (handle) =>
        `{"raw_handle":{"b64":"${handle.toString("base64")}"},"device_id":0,"byte_size":${byteSize}}`,
    ),
    async [Symbol.asyncDispose]() {
      for (const allocation of allocations) await allocation[Symbol.asyncDispose]();
    },
  };
}
