import type { Environment } from "../config/read-options.js";
import type { CommandIo } from "./command.js";
import { LineProcess, type ProcessEnd } from "./line-process.js";

/** The service as a process of its own, on free ports, with its log read line by line. */
export class ServiceProcess implements AsyncDisposable {
  readonly process: LineProcess;
  /** Every log line so far. */
  readonly log: ReadonlyArray<Readonly<Record<string, unknown>>>;
  /** Such as `http://127.0.0.1:41234`. */
  readonly httpUrl: string;
  /** Such as `127.0.0.1:41235`. */
  readonly grpcAddress: string;
  /** Such as `http://127.0.0.1:41236/metrics`; empty if they are off. */
  readonly metricsUrl: string;
  readonly #logRead: Promise<void>;

  private constructor(
    process: LineProcess,
    log: Record<string, unknown>[],
    started: ReadonlyMap<string, string>,
  ) {
    this.process = process;
    this.log = log;
    const metrics = started.get("Metrics Service");
    this.httpUrl = `http://${started.get("HTTPService")}`;
    this.grpcAddress = started.get("GRPCInferenceService") ?? "";
    // Told before the other two, so it is known here.
    this.metricsUrl = metrics === undefined ? "" : `http://${metrics}/metrics`;
    this.#logRead = readOn(process, log);
  }

  /** Resolves when both start-up lines were seen, so `args` must leave both faces and the log on. Rejects with what it said if it ends before. */
  static async start(
    self: CommandIo["self"],
    args: readonly string[],
    env?: Environment,
  ): Promise<ServiceProcess> {
    const ports = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"];
    const process = new LineProcess(self.executable, [...self.args, "serve", ...ports, ...args], env);
    const log: Record<string, unknown>[] = [];
    const started = new Map<string, string>();
    while (!started.has("HTTPService") || !started.has("GRPCInferenceService")) {
      const line = JSON.parse(await process.nextLine()) as Record<string, unknown>;
      log.push(line);
      const [, face, address] = /^Started (.+) at (\S+)$/.exec(String(line.msg)) ?? [];
      if (face !== undefined && address !== undefined && !address.startsWith("unix:"))
        started.set(face, address);
    }
    return new ServiceProcess(process, log, started);
  }

  /** Sends SIGTERM, waits for the end and reads the rest of the log. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<ProcessEnd> {
    const end = await this.process.kill(signal);
    await this.#logRead;
    return end;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop("SIGKILL");
  }
}

async function readOn(process: LineProcess, log: Record<string, unknown>[]): Promise<void> {
  for await (const line of process.lines()) log.push(JSON.parse(line) as Record<string, unknown>);
}
