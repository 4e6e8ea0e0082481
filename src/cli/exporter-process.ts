import type { Environment } from "../config/read-options.js";
import { listenForAbort } from "../core/abort.js";
import type { CommandIo } from "./command.js";
import { LineProcess } from "./line-process.js";

/** What `cudashm allocate` prints, and what a register over HTTP takes. */
export interface RegisterBody {
  readonly raw_handle: { readonly b64: string };
  readonly device_id: number;
  readonly byte_size: number;
}

/** `cudashm allocate --interactive` as a process of its own: the exporter of one allocation. */
export class ExporterProcess implements AsyncDisposable {
  readonly process: LineProcess;
  /** The line it printed, to be posted as it is. */
  readonly bodyLine: string;
  readonly body: RegisterBody;

  private constructor(process: LineProcess, bodyLine: string) {
    this.process = process;
    this.bodyLine = bodyLine;
    this.body = JSON.parse(bodyLine) as RegisterBody;
  }

  /** Resolves once it has allocated. Rejects with what it said if it could not. `signal` ends the process. */
  static async start(
    self: CommandIo["self"],
    args: readonly string[],
    env?: Environment,
    signal?: AbortSignal,
  ): Promise<ExporterProcess> {
    const process = new LineProcess(
      self.executable,
      [...self.args, "allocate", "--interactive", ...args],
      env,
    );
    const stopListening = listenForAbort(signal, () => void process.kill("SIGKILL"));
    void process.exit.then(stopListening);
    return new ExporterProcess(process, await process.nextLine());
  }

  get pid(): number {
    return this.process.pid;
  }

  async read(offset: number, byteSize: number): Promise<Buffer> {
    const answer = await this.process.ask<{ b64: string }>({ op: "read", offset, byte_size: byteSize });
    return Buffer.from(answer.b64, "base64");
  }

  async write(offset: number, bytes: Buffer): Promise<void> {
    await this.process.ask({ op: "write", offset, b64: bytes.toString("base64") });
  }

  /** Free memory of its device in bytes, as its driver tells it. */
  async freeBytes(): Promise<number> {
    return (await this.process.ask<{ free_bytes: number }>({ op: "memory" })).free_bytes;
  }

  /** Frees the allocation; the process lives on. */
  async free(): Promise<void> {
    await this.process.ask({ op: "free" });
  }

  /** Closes its standard input and gives the code it ends with. */
  async end(): Promise<number | null> {
    return (await this.process.endInput()).code;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.process[Symbol.asyncDispose]();
  }
}
