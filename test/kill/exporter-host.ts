import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { LineProcess } from "../../src/cli/line-process.js";
import type { Exporter } from "../../src/core/exporter.js";
import { driverLibraryName, emulatedDriverFolder } from "../../src/native/emulated-driver.js";
import { readExporter } from "../../src/native/exporter-identity.js";
import { keepSecret } from "../helpers/secrets.js";

/** Memory of an exporter, which wrote the pattern of `seed` to it. */
export interface Allocation {
  readonly host: ExporterHost;
  readonly number: number;
  readonly deviceId: number;
  readonly byteSize: number;
  readonly seed: number;
  readonly handle: Buffer;
}

/** How many devices the exporters and the services under test have. */
export const deviceVariables = { CUDASHM_EMULATED_DEVICE_COUNT: "2" };

/** Compiles the exporter into a folder; resolves with its path. */
export async function buildExporter(folder: string): Promise<string> {
  const program = join(folder, "exporter");
  const source = fileURLToPath(new URL("exporter.c", import.meta.url));
  await promisify(execFile)("cc", ["-O1", "-Wall", "-Wextra", "-Werror", "-o", program, source, "-ldl"]);
  return program;
}

/** A process that exports many allocations, made to be killed. */
export class ExporterHost implements AsyncDisposable {
  readonly #process: LineProcess;
  readonly identity: Exporter;
  #allocations = 0;
  #isAlive = true;

  private constructor(process: LineProcess, identity: Exporter) {
    this.#process = process;
    this.identity = identity;
  }

  static async start(program: string): Promise<ExporterHost> {
    const library = join(emulatedDriverFolder(), driverLibraryName);
    const process = new LineProcess(program, [library], deviceVariables);
    return new ExporterHost(process, await readExporter(process.pid));
  }

  /** False from the moment it was told to end. */
  get isAlive(): boolean {
    return this.#isAlive;
  }

  async allocate(deviceId: number, byteSize: number, seed: number): Promise<Allocation> {
    const { handle } = await this.#process.ask<{ handle: string }>({ allocate: [deviceId, byteSize, seed] });
    const bytes = Buffer.from(handle, "hex");
    keepSecret("a handle", bytes);
    return { host: this, number: this.#allocations++, deviceId, byteSize, seed, handle: bytes };
  }

  /** Frees the memory; its handle is stale from then on. */
  async free({ number }: Allocation): Promise<void> {
    await this.#process.ask({ free: [number] });
  }

  /** Sends a signal that does not end it. */
  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    process.kill(this.#process.pid, signal);
  }

  /** Resolves once the system has let go of it. */
  async kill(): Promise<void> {
    this.#isAlive = false;
    await this.#process.kill("SIGKILL");
  }

  /** Lets it exit by itself; resolves with its code. */
  async exit(): Promise<number | null> {
    this.#isAlive = false;
    return (await this.#process.endInput()).code;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill();
  }
}

/** What the exporter wrote there. */
export function patternOf({ seed }: Allocation, offset: number, byteSize: number): Buffer {
  const bytes = Buffer.alloc(byteSize);
  for (let i = 0; i < byteSize; i++) {
    const at = offset + i;
    bytes[i] = (seed * 31 + at * 7 + Math.floor(at / 256)) % 256;
  }
  return bytes;
}
