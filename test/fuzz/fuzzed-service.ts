import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import type { ServiceProcess } from "../../src/cli/service-process.js";
import { callLog } from "../helpers/call-log.js";
import { startService } from "../helpers/cudashm.js";
import { type Allocation, buildExporter, deviceVariables, ExporterHost } from "../kill/exporter-host.js";
import { HttpLine, type RawAnswer, requestText } from "./raw-http.js";

/**
 * Node's HTTP/2 keeps a connection after some violations of the protocol, though its client is gone: only keepalive
 * ends it.
 */
export const shortKeepalive = ["--grpc-keepalive-time=1000", "--grpc-keepalive-timeout=1000"] as const;

/** Each one's token is the name twice; `ops` is an administrator. */
export const tokens = { alice: "alice-alice", ops: "ops-ops" } as const;

const allocationBytes = 4096;
/** For what it lets go of a little later. */
const patienceMs = 20_000;
/** Far more than it needs, far less than what a flood would take that is kept. */
const maxResidentMiB = 700;

/** The service as users start it, with an exporter's memory, and what tells whether it took harm. */
export class FuzzedService implements AsyncDisposable {
  readonly allocations: readonly Allocation[];
  readonly httpPort: number;
  readonly grpcAddress: string;
  readonly grpcPort: number;
  /** Well-behaved, and open all the time. */
  readonly line: HttpLine;
  readonly #service: ServiceProcess;
  readonly #log: ReturnType<typeof callLog>;
  readonly #folder: string;
  readonly #host: ExporterHost;
  #files = 0;

  private constructor(
    service: ServiceProcess,
    log: ReturnType<typeof callLog>,
    folder: string,
    host: ExporterHost,
    allocations: readonly Allocation[],
  ) {
    this.#service = service;
    this.#log = log;
    this.#folder = folder;
    this.#host = host;
    this.allocations = allocations;
    this.httpPort = Number(new URL(service.httpUrl).port);
    this.grpcAddress = service.grpcAddress;
    this.grpcPort = Number(service.grpcAddress.split(":").at(-1));
    this.line = new HttpLine(this.httpPort);
  }

  /** With `needsToken` it answers only `tokens`. */
  static async start({ needsToken = false, args = [] as readonly string[] } = {}): Promise<FuzzedService> {
    const folder = mkdtempSync(join(tmpdir(), "cudashm-fuzz-"));
    const log = callLog();
    const tokenFile = join(folder, "tokens");
    const lines = Object.entries(tokens).map(([name, token]) => {
      const digest = createHash("sha256").update(token).digest("hex");
      return `${name}: ${digest}${name === "ops" ? " admin" : ""}\n`;
    });
    writeFileSync(tokenFile, lines.join(""), { mode: 0o600 });
    const host = await ExporterHost.start(await buildExporter(folder));
    const allocations: Allocation[] = [];
    for (const seed of [1, 2]) allocations.push(await host.allocate(0, allocationBytes, seed));
    const allArgs = ["--allow-contents", ...(needsToken ? [`--token-file=${tokenFile}`] : []), ...args];
    const service = await startService(allArgs, { ...deviceVariables, ...log.variables });
    const fuzzed = new FuzzedService(service, log, folder, host, allocations);
    // What it opens once, it has open from here on.
    await fuzzed.register("first");
    await fuzzed.unregister("first");
    fuzzed.#files = fuzzed.#openFiles();
    return fuzzed;
  }

  /** Somebody who may do everything. */
  ask(method: string, target: string, body?: string): Promise<RawAnswer> {
    const headers = [`Authorization: Bearer ${tokens.ops}`];
    return this.line.ask(requestText(method, target, body === undefined ? { headers } : { headers, body }));
  }

  async register(name: string, allocation = this.allocations[0] as Allocation): Promise<void> {
    const body = `{"raw_handle":{"b64":"${allocation.handle.toString("base64")}"},"device_id":0,"byte_size":64}`;
    const answer = await this.ask("POST", regionTarget(name, "register"), body);
    expect(answer).toMatchObject({ status: 200, body: "" });
  }

  async unregister(name: string): Promise<void> {
    expect((await this.ask("POST", regionTarget(name, "unregister"))).status).toBe(200);
  }

  async has(name: string): Promise<boolean> {
    return (await this.ask("GET", regionTarget(name, "status"))).status === 200;
  }

  /** Fails unless it is as it was before all of this: no region, mapping, connection or file too many, no fault. */
  async expectUnharmed(): Promise<void> {
    expect((await this.ask("POST", "/v2/cudasharedmemory/unregister")).status).toBe(200);
    // Connections are closed at its next turns, of which each answer is one, or by keepalive.
    const end = Date.now() + patienceMs;
    let unfinished = await this.#unfinished();
    while (unfinished.length > 0 && Date.now() < end) unfinished = await this.#unfinished();
    expect(unfinished).toEqual([]);
    while (this.#openFiles() > this.#files && Date.now() < end) {
      expect((await this.ask("GET", "/v2/cudasharedmemory/status")).body).toBe("[]");
    }
    expect(this.#openFiles()).toBeLessThanOrEqual(this.#files);
    expect(this.#proc("maps")).not.toContain("/memfd:cudashm");
    const opens = this.#log.count("cuIpcOpenMemHandle_v2");
    expect(this.#log.count("cuIpcCloseMemHandle")).toBe(opens);
    expect(opens).toBeGreaterThan(0);
    const peakKiB = Number(/^VmHWM:\s*(\d+) kB$/m.exec(this.#proc("status"))?.[1]);
    expect(peakKiB / 1024).toBeLessThan(maxResidentMiB);
    expect(this.#service.log.filter(({ level }) => Number(level) >= 40)).toEqual([]);
    expect(this.#service.process.errorText).toBe("");
  }

  /** Lines of its metrics that tell of requests which are not answered, or of memory that somebody uses. */
  async #unfinished(): Promise<readonly string[]> {
    // A connection that is kept would be a file too many.
    const answer = await fetch(this.#service.metricsUrl, { headers: { connection: "close" } });
    const text = await answer.text();
    const gauges = text.split("\n").filter((line) => /^cudashm_(requests_in_flight|pins)\b/.test(line));
    expect(gauges.length).toBeGreaterThan(1);
    return gauges.filter((line) => !line.endsWith(" 0"));
  }

  #openFiles(): number {
    return readdirSync(`/proc/${this.#service.process.pid}/fd`).length;
  }

  #proc(file: string): string {
    return readFileSync(`/proc/${this.#service.process.pid}/${file}`, "utf8");
  }

  /** Stops it, which it has to do as well as ever. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.line[Symbol.dispose]();
    try {
      expect(await this.#service.stop()).toEqual({ code: 0, signal: null });
    } finally {
      await this.#service[Symbol.asyncDispose]();
      await this.#host[Symbol.asyncDispose]();
      this.#log[Symbol.dispose]();
      rmSync(this.#folder, { recursive: true });
    }
  }
}

/** The target of one of Triton's calls about a region. */
export function regionTarget(name: string, call: "register" | "unregister" | "status"): string {
  return `/v2/cudasharedmemory/region/${encodeURIComponent(name)}/${call}`;
}

/** Fails unless an answer is a success, or an error as every error has to be. None is the service's fault. */
export function expectSound({ status, headers, body }: RawAnswer, method = "GET"): void {
  expect(headers.get("x-request-id")).toMatch(/^[\w.:/+=-]{1,64}$/);
  if (status === 200) return;
  expect([400, 401, 403, 404, 405, 408, 413, 429, 431, 501, 504]).toContain(status);
  expect(headers.get("content-type")).toBe("application/json");
  if (method === "HEAD") return;
  const { error, ...others } = JSON.parse(body) as { error: unknown };
  expect([typeof error, others]).toEqual(["string", {}]);
  expect(error).not.toBe("");
  expect(String(error).length).toBeLessThan(2000);
  // None where no operation was reached.
  const isNamed =
    !["Not Found", "Method Not Allowed"].includes(String(error)) && !/^malformed HTTP/.test(String(error));
  expect(headers.get("x-error-code") ?? "none").toMatch(isNamed ? /^[A-Z_]{5,}$/ : /^none$/);
}
