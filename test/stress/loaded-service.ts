import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { LineProcess, type ProcessEnd } from "../../src/cli/line-process.js";
import { told } from "../helpers/secrets.js";
import { CallCounts } from "./call-counts.js";
import { Metrics } from "./metrics.js";

export type LogLine = Readonly<Record<string, unknown>>;

/** What a process has of the system. */
export interface Footprint {
  readonly residentBytes: number;
  /** File descriptors. */
  readonly files: number;
  /** Allocations of other processes that are mapped, as the kernel lists them. */
  readonly importedAllocations: number;
}

/** What the service has when nobody asks anything of it. */
export interface Rest {
  readonly files: number;
  readonly timers: number;
  readonly sockets: number;
}

const main = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
const fixedArgs = [
  "--driver=emulated",
  "--http-port=0",
  "--grpc-port=0",
  "--metrics-port=0",
  "--allow-contents",
];
const mostWarnings = 10_000;
const patienceMs = 10_000;

/** The service as a process under load. Of its log only what is worse than information is kept. */
export class LoadedService implements AsyncDisposable {
  readonly calls: CallCounts;
  /** Such as `127.0.0.1:41234`. */
  readonly httpAddress: string;
  readonly grpcAddress: string;
  /** The log's lines of level warning and above, and those that are no JSON. */
  readonly warnings: readonly LogLine[];
  readonly #process: LineProcess;
  readonly #metricsUrl: string;

  private constructor(
    process: LineProcess,
    calls: CallCounts,
    addresses: ReadonlyMap<string, string>,
    warnings: readonly LogLine[],
  ) {
    this.#process = process;
    this.calls = calls;
    this.httpAddress = addresses.get("HTTPService") ?? "";
    this.grpcAddress = addresses.get("GRPCInferenceService") ?? "";
    this.#metricsUrl = `http://${addresses.get("Metrics Service")}/metrics`;
    this.warnings = warnings;
  }

  /** Resolves once it is ready. Rejects with what it said if it ends instead. */
  static async start(
    args: readonly string[],
    variables: Readonly<Record<string, string | undefined>>,
  ): Promise<LoadedService> {
    const calls = new CallCounts();
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("CUDASHM_"));
    const env = { ...Object.fromEntries(inherited), ...calls.variables, ...variables };
    const service = new LineProcess(process.execPath, [main, "serve", ...fixedArgs, ...args], env);
    const addresses = new Map<string, string>();
    const warnings: LogLine[] = [];
    let isUsable = false;
    while (!isUsable || addresses.size < 3) {
      const line = JSON.parse(await service.nextLine()) as LogLine;
      const text = String(line.msg);
      const [, face, address] = /^Started (.+) at (\S+)$/.exec(text) ?? [];
      if (face !== undefined && address !== undefined) addresses.set(face, address);
      if (text === "CUDA driver is usable") isUsable = true;
      keepIfWorse(warnings, line);
    }
    void readOn(service, warnings);
    return new LoadedService(service, calls, addresses, warnings);
  }

  get pid(): number {
    return this.#process.pid;
  }

  metrics(): Promise<Metrics> {
    return Metrics.read(this.#metricsUrl);
  }

  footprint(): Footprint {
    const read = (name: string) => readFileSync(`/proc/${this.pid}/${name}`, "utf8");
    return {
      residentBytes: Number(/VmRSS:\s+(\d+)/.exec(read("status"))?.[1]) * 1024,
      files: readdirSync(`/proc/${this.pid}/fd`).length,
      importedAllocations: new Set(
        [...read("maps").matchAll(/ (\d+) +\/memfd:cudashm/g)].map(([, inode]) => inode),
      ).size,
    };
  }

  /** What it has while all its clients are gone: the least of several looks, since connections take a moment to go. */
  async atRest(): Promise<Rest> {
    const looks: Rest[] = [];
    while (looks.length < 5) looks.push(await this.untilQuiet());
    const least = (of: keyof Rest) => Math.min(...looks.map((look) => look[of]));
    return { files: least("files"), timers: least("timers"), sockets: least("sockets") };
  }

  /**
   * Resolves once nothing is under way and it has no more of the system than `rest`; rejects if that takes long, with
   * what it still has. All its clients have to be gone, but for those of `openRequests`.
   */
  async untilQuiet(rest?: Rest, openRequests = 0): Promise<Rest> {
    const deadline = performance.now() + patienceMs;
    for (;;) {
      const metrics = await this.metrics();
      const underWay = {
        requests: metrics.sum("cudashm_requests_in_flight"),
        driverCalls: metrics.value("cudashm_driver_calls_running"),
      };
      const has = {
        files: this.footprint().files,
        timers: metrics.value('nodejs_active_resources{type="Timeout"}'),
        sockets: metrics.value('nodejs_active_resources{type="TCPSocketWrap"}'),
      };
      const isIdle = underWay.requests <= openRequests && underWay.driverCalls === 0;
      const { files, timers, sockets } = rest ?? has;
      if (isIdle && has.files <= files && has.timers <= timers && has.sockets <= sockets) return has;
      if (performance.now() > deadline) {
        throw new Error(`no quiet after ${patienceMs} ms: ${JSON.stringify({ underWay, has, rest })}`);
      }
    }
  }

  /** Resolves once so many requests are under way; rejects if that takes long. */
  async untilRequests(count: number): Promise<void> {
    const deadline = performance.now() + patienceMs;
    for (;;) {
      const underWay = (await this.metrics()).sum("cudashm_requests_in_flight");
      if (underWay >= count) return;
      if (performance.now() > deadline) throw new Error(`${underWay} requests are under way, not ${count}`);
    }
  }

  /** Sends SIGTERM; resolves with how it ended. */
  stop(): Promise<ProcessEnd> {
    return this.#process.kill("SIGTERM");
  }

  /** All it wrote to standard error. */
  get errorText(): string {
    return this.#process.errorText;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process.kill("SIGKILL");
    this.calls[Symbol.dispose]();
  }
}

async function readOn(service: LineProcess, warnings: LogLine[]): Promise<void> {
  for await (const line of service.lines()) {
    // Most of them, by far: not worth to be read in full.
    if (line.startsWith('{"level":30,')) continue;
    keepIfWorse(warnings, lineOf(line));
  }
}

function lineOf(line: string): LogLine {
  try {
    return JSON.parse(line) as LogLine;
  } catch {
    return { level: 60, msg: line };
  }
}

function keepIfWorse(warnings: LogLine[], line: LogLine): void {
  if (Number(line.level) <= 30 || warnings.length === mostWarnings) return;
  warnings.push(line);
  told(JSON.stringify(line));
}
