import type { RegisterBody } from "../../../src/cli/exporter-process.js";
import { driverEnvironment, Program } from "./program.js";
import { programs } from "./programs.js";

/** The exporter of examples/cpp, holding one allocation. */
export class CppExporter implements AsyncDisposable {
  readonly #program: Program;
  /** The line it printed, as clients take it on standard input. */
  readonly line: string;

  private constructor(program: Program, line: string) {
    this.#program = program;
    this.line = line;
  }

  static async start(byteSize: bigint | number = 4096): Promise<CppExporter> {
    const program = new Program(programs.exporter, [String(byteSize)], await driverEnvironment());
    return new CppExporter(program, await program.nextLine());
  }

  get handle(): Buffer {
    return Buffer.from((JSON.parse(this.line) as RegisterBody).raw_handle.b64, "base64");
  }

  async write(offset: number, text: string): Promise<void> {
    this.#program.send(`write ${offset} ${text}`);
    await this.#program.nextLine();
  }

  /** Must not read a line feed. */
  read(offset: number, byteSize: number): Promise<string> {
    this.#program.send(`read ${offset} ${byteSize}`);
    return this.#program.nextLine();
  }

  /** Has it free the memory and end; gives its exit code. */
  end(): Promise<number | null> {
    return this.#program.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#program[Symbol.asyncDispose]();
  }
}

/** The memory that cases ask for, one exporter for each size. */
export class CppExporters implements AsyncDisposable {
  readonly #bySize = new Map<bigint, Promise<CppExporter>>();

  readonly allocate = async (byteSize: bigint) => {
    const started = this.#bySize.get(byteSize) ?? CppExporter.start(byteSize);
    this.#bySize.set(byteSize, started);
    return { handle: (await started).handle, byteSize };
  };

  /** A handle whose exporter was killed. */
  readonly staleHandle = async (): Promise<Uint8Array> => {
    await using exporter = await CppExporter.start();
    return exporter.handle;
  };

  async [Symbol.asyncDispose](): Promise<void> {
    for (const exporter of this.#bySize.values()) await (await exporter)[Symbol.asyncDispose]();
  }
}
