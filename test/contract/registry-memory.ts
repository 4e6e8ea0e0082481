import { readExporter } from "../../src/native/exporter-identity.js";
import { startExporter } from "../helpers/cudashm.js";
import type { ExporterView } from "./registry-face-client.js";
import type { Memory } from "./registry-fixture.js";

/** Memory that lasts until it is disposed of. */
export type StartedMemory = Memory & AsyncDisposable;

/** An allocation of so many bytes, in a process of its own. */
export async function startMemory(bytes: number): Promise<StartedMemory> {
  const exporter = await startExporter([`--bytes=${bytes}`]);
  const { raw_handle, device_id, byte_size } = exporter.body;
  return {
    byteSize: BigInt(byte_size),
    exporter: await exporterView(exporter.pid),
    part: (byteSize = 64n, offset) => ({
      raw_handle: Buffer.from(raw_handle.b64, "base64"),
      device_id: BigInt(device_id),
      byte_size: byteSize,
      ...(offset !== undefined && { offset }),
    }),
    read: (offset, byteSize) => exporter.read(offset, byteSize),
    write: (offset, data) => exporter.write(offset, data),
    [Symbol.asyncDispose]: () => exporter[Symbol.asyncDispose](),
  };
}

/** What is told of a process that exports memory. */
export async function exporterView(pid: number): Promise<ExporterView> {
  const { startTime, bootId, pidNamespace } = await readExporter(pid);
  return { pid: BigInt(pid), start_time: startTime, boot_id: bootId, pid_namespace: pidNamespace };
}
