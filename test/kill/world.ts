import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Allocation, buildExporter, ExporterHost } from "./exporter-host.js";
import type { SeededRandom } from "./seeded-random.js";

const hostCount = 3;
const allocationsOfHost = 8;
const allocationBytes = 16 * 1024;

/** What outlives the services of a test: the state file, tokens, and exporters with memory. */
export class World implements AsyncDisposable {
  readonly folder: string;
  readonly #program: string;
  readonly #hosts = new Map<ExporterHost, readonly Allocation[]>();
  #seed = 0;
  #byteSize = 0;

  private constructor(folder: string, program: string) {
    this.folder = folder;
    this.#program = program;
  }

  static async create(): Promise<World> {
    const folder = mkdtempSync(join(tmpdir(), "cudashm-kill-"));
    const world = new World(folder, await buildExporter(folder));
    for (let i = 0; i < hostCount; i++) await world.addHost();
    return world;
  }

  get stateFile(): string {
    return join(this.folder, "state");
  }

  /** Makes a token file of these names; `ops` is an administrator. Each one's token is its name twice. */
  tokenFile(names: readonly string[]): string {
    const path = join(this.folder, "tokens");
    const lines = names.map((name) => {
      const digest = createHash("sha256").update(tokenOf(name)).digest("hex");
      return `${name}: ${digest}${name === "ops" ? " admin" : ""}\n`;
    });
    writeFileSync(path, lines.join(""), { mode: 0o600 });
    return path;
  }

  /** Memory of the exporters that live. */
  readonly allocations = (): readonly Allocation[] =>
    [...this.#hosts].flatMap(([host, allocations]) => (host.isAlive ? allocations : []));

  /** From 1 to the size of an allocation, and another one each time, for as long as that goes. */
  readonly nextByteSize = (): number => {
    this.#byteSize = (this.#byteSize % allocationBytes) + 1;
    return this.#byteSize;
  };

  async addHost(): Promise<void> {
    const host = await ExporterHost.start(this.#program);
    const allocations: Allocation[] = [];
    for (let i = 0; i < allocationsOfHost; i++) {
      allocations.push(await host.allocate(i % 2, allocationBytes, ++this.#seed));
    }
    this.#hosts.set(host, allocations);
  }

  /** Kills an exporter. */
  async killHost(random: SeededRandom): Promise<ExporterHost> {
    const host = random.pick([...this.#hosts.keys()]);
    this.#hosts.delete(host);
    await host.kill();
    return host;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#hosts.keys()].map((host) => host.kill()));
    rmSync(this.folder, { recursive: true });
  }
}

export function tokenOf(name: string): string {
  return `${name}-${name}`;
}
