import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Bench } from "../case.js";
import type { MemoryFigures } from "../servers/probe.js";
import { accepts, answersOk, freePort, untilUp } from "./listening.js";
import { WorkerProcess } from "./worker-process.js";

const built = fileURLToPath(new URL("..", import.meta.url));
const probe = join(built, "servers", "probe.js");

/** `dist/main.js`, the service as it is installed. */
export const productScript = fileURLToPath(new URL("../../dist/main.js", import.meta.url));

/** A server that is measured: the product or a baseline, in a process of its own. */
export class ServerProcess implements AsyncDisposable {
  readonly httpPort: number;
  readonly grpcPort: number;
  readonly #worker: WorkerProcess;

  private constructor(worker: WorkerProcess, httpPort: number, grpcPort: number) {
    this.#worker = worker;
    this.httpPort = httpPort;
    this.grpcPort = grpcPort;
  }

  /** The service, with its log off unless `flags` say otherwise; resolves when it is ready. */
  static async product(bench: Bench, flags: readonly string[] = []): Promise<ServerProcess> {
    const [http, grpc] = [await freePort(), await freePort()];
    const worker = new WorkerProcess(productScript, {
      core: bench.cores.server,
      nodeArgs: nodeArgs(bench, ["cudashm", ...flags].join("")),
      args: [...productArgs(http, grpc), ...flags],
    });
    await untilUp(
      () => answersOk(http, "/v2/health/ready"),
      () => worker.hasEnded,
    ).catch((error: Error) => failed(error, worker));
    return new ServerProcess(worker, http, grpc);
  }

  /** A server of servers/, which speaks one protocol and takes its port as the first argument. */
  static async baseline(
    bench: Bench,
    script: "node-http" | "hono" | "grpc-js",
    args: readonly string[] = [],
  ): Promise<ServerProcess> {
    const port = await freePort();
    const worker = new WorkerProcess(join(built, "servers", `${script}.js`), {
      core: bench.cores.server,
      nodeArgs: nodeArgs(bench, [script, ...args].join("")),
      args: [String(port), ...args],
    });
    await untilUp(
      () => accepts(port),
      () => worker.hasEnded,
    ).catch((error: Error) => failed(error, worker));
    return new ServerProcess(worker, port, port);
  }

  get pid(): number {
    return this.#worker.pid;
  }

  /** What it keeps. */
  memory(): Promise<MemoryFigures> {
    return this.#worker.ask<MemoryFigures>({ op: "memory" });
  }

  async watchLoop(): Promise<void> {
    await this.#worker.ask({ op: "watchLoop" });
  }

  /** How long its event loop was held since `watchLoop`, by name in milliseconds. */
  loopDelays(): Promise<Readonly<Record<string, number>>> {
    return this.#worker.ask({ op: "loopDelays" });
  }

  /** MiB a second that memcpy moves in its process. */
  memcpy(question: { readonly bytes: number; readonly seconds: number }): Promise<number> {
    return this.#worker.ask<number>({ op: "memcpy", ...question });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker[Symbol.asyncDispose]();
  }
}

/** How the product is started for a measurement. */
export function productArgs(httpPort: number, grpcPort: number): readonly string[] {
  return [
    "serve",
    "--driver=emulated",
    `--http-port=${httpPort}`,
    `--grpc-port=${grpcPort}`,
    "--metrics-port=0",
    "--log-info=false",
    "--log-warning=false",
  ];
}

function nodeArgs({ profileFolder }: Bench, name: string): readonly string[] {
  const profile = ["--cpu-prof", `--cpu-prof-dir=${profileFolder}`, `--cpu-prof-name=${profileName(name)}`];
  return ["--expose-gc", "--import", probe, ...(profileFolder === null ? [] : profile)];
}

let profiles = 0;

function profileName(name: string): string {
  profiles++;
  return `${profiles}-${name.replace(/[^\w-]+/g, "-")}.cpuprofile`;
}

async function failed(error: Error, worker: WorkerProcess): Promise<never> {
  await worker[Symbol.asyncDispose]();
  throw new Error(`${error.message}: ${worker.errorText.trim()}`);
}
