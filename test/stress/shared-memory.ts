import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Exporter } from "../../src/core/exporter.js";
import { buildExporter, deviceVariables, ExporterHost } from "../kill/exporter-host.js";
import type { Memory } from "./answer.js";

/** Memory that clients register, and whose it is. */
export interface SharedMemory extends Memory {
  readonly exporter: Exporter;
}

/** What a service needs in its environment to have the devices that the memory is on. */
export const memoryVariables = deviceVariables;

const hostCount = 2;

/** Memory of other processes, on two devices. */
export class SharedMemories implements AsyncDisposable {
  readonly all: readonly SharedMemory[];
  readonly #folder: string;
  readonly #hosts: readonly ExporterHost[];

  private constructor(folder: string, hosts: readonly ExporterHost[], all: readonly SharedMemory[]) {
    this.#folder = folder;
    this.#hosts = hosts;
    this.all = all;
  }

  static async create(count: number, byteSize: number): Promise<SharedMemories> {
    const folder = mkdtempSync(join(tmpdir(), "cudashm-memory-"));
    const program = await buildExporter(folder);
    const hosts = await Promise.all(Array.from({ length: hostCount }, () => ExporterHost.start(program)));
    const all: SharedMemory[] = [];
    for (let i = 0; i < count; i++) {
      const host = hosts[i % hostCount] as ExporterHost;
      const { handle, deviceId } = await host.allocate(Math.floor(i / hostCount) % 2, byteSize, i);
      all.push({ handle, deviceId, byteSize, exporter: host.identity });
    }
    return new SharedMemories(folder, hosts, all);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#hosts.map((host) => host.kill()));
    rmSync(this.#folder, { recursive: true });
  }
}
