import { fileURLToPath } from "node:url";
import { LineProcess, type ProcessEnd } from "../../src/cli/line-process.js";
import { callLog } from "../helpers/call-log.js";
import { told } from "../helpers/secrets.js";
import { deviceVariables } from "./exporter-host.js";

/** Where a service kills itself: at which of its calls on the state file, or on the file that is to replace it. */
export interface Death {
  readonly call: number;
  readonly isRewrite: boolean;
  readonly when: "before" | "half" | "after";
}

export interface StartOrder {
  readonly stateFile: string;
  readonly args: readonly string[];
  readonly variables?: Readonly<Record<string, string>>;
  readonly death?: Death | undefined;
}

export type LogLine = Readonly<Record<string, unknown>>;

interface Waiting {
  matches(line: LogLine): boolean;
  resolve(line: LogLine): void;
  reject(error: unknown): void;
}

/** The service ended before what was waited for. */
export class ServiceDied extends Error {
  override readonly name = "ServiceDied";
}

const main = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
const preload = new URL("../fixtures/killed-service.mjs", import.meta.url).href;

// Metrics would be the largest part of the start, and nothing here is about them.
const fixedArgs = ["--driver=emulated", "--http-port=0", "--grpc-port=0", "--allow-metrics=false"];

function environment(): Record<string, string | undefined> {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("CUDASHM_"));
  return Object.fromEntries(inherited);
}

/** The service as users start it, loaded ahead of its start, with its log read line by line. */
export class DoomedService implements AsyncDisposable {
  readonly #process: LineProcess;
  readonly #calls = callLog();
  readonly #log: LogLine[] = [];
  #waiting: Waiting[] = [];
  #hasEnded = false;
  #isDoomed = false;

  constructor() {
    const args = ["--import", preload, main, "serve", ...fixedArgs, "--allow-contents"];
    this.#process = new LineProcess(process.execPath, args, environment());
  }

  /** Lets it begin. What comes of it is told by its log. */
  start(order: StartOrder): void {
    if (order.death !== undefined) this.#isDoomed = true;
    const variables = { ...deviceVariables, ...this.#calls.variables, ...order.variables };
    void this.#read({ ...order, variables });
  }

  /** Whether its end has been asked for. */
  get isDoomed(): boolean {
    return this.#isDoomed;
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** Every line of its log so far. */
  get log(): readonly LogLine[] {
    return this.#log;
  }

  /** The first line that holds a text or fits a condition, as soon as there is one. Rejects with ServiceDied. */
  logged(wanted: string | ((line: LogLine) => boolean)): Promise<LogLine> {
    const matches =
      typeof wanted === "string" ? (line: LogLine) => String(line.msg).includes(wanted) : wanted;
    const found = this.#log.find(matches);
    if (found !== undefined) return Promise.resolve(found);
    return new Promise((resolve, reject) => {
      if (this.#hasEnded) reject(this.#died());
      else this.#waiting.push({ matches, resolve, reject });
    });
  }

  /** Where a face listens, as soon as it does. Rejects with ServiceDied. */
  async address(face: "HTTPService" | "GRPCInferenceService"): Promise<string> {
    const { msg } = await this.logged(`Started ${face} at `);
    return String(msg).split(" ").at(-1) ?? "";
  }

  /** Resolves once it has taken up the regions of the run before and can open others. Rejects with ServiceDied. */
  async ready(): Promise<void> {
    await Promise.all([this.logged("CUDA driver is usable"), this.logged("were taken up")]);
  }

  /** Handles that its driver has open: opens less closes. */
  openHandles(): number {
    return this.#calls.count("cuIpcOpenMemHandle_v2") - this.#calls.count("cuIpcCloseMemHandle");
  }

  /** Sends the signal at once; resolves when it has ended. */
  kill(signal: "SIGKILL" | "SIGTERM" = "SIGKILL"): Promise<ProcessEnd> {
    this.#isDoomed = true;
    return this.#process.kill(signal);
  }

  /** How it ended, once it has. */
  get end(): Promise<ProcessEnd> {
    return this.#process.exit;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    this.#calls[Symbol.dispose]();
  }

  async #read(order: object): Promise<void> {
    try {
      this.#take(await this.#process.ask<LogLine>(order));
      for await (const line of this.#process.lines()) this.#take(JSON.parse(line) as LogLine);
    } catch {
      // It ended before it said anything.
    }
    await this.#process.exit;
    this.#hasEnded = true;
    for (const { reject } of this.#waiting) reject(this.#died());
    this.#waiting = [];
  }

  #take(line: LogLine): void {
    this.#log.push(line);
    // The rest repeats itself hundreds of times.
    if (Number(line.level) > 30) told(JSON.stringify(line));
    this.#waiting = this.#waiting.filter(({ matches, resolve }) => {
      if (!matches(line)) return true;
      resolve(line);
      return false;
    });
  }

  #died(): ServiceDied {
    return new ServiceDied(`the service ended: ${this.#process.errorText}`);
  }
}
