import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import type { ServiceProcess } from "../../src/cli/service-process.js";
import { callLog } from "../helpers/call-log.js";
import { startService } from "../helpers/cudashm.js";
import { keepSecret } from "../helpers/secrets.js";
import type { SentHeaders } from "./face-client.js";
import type { RegistryFaceClient } from "./registry-face-client.js";
import { createGrpcRegistryClient } from "./registry-grpc-client.js";
import { createHttpRegistryClient } from "./registry-http-client.js";

/** Those who have a token where tokens are wanted; `ops` is an administrator. */
export type Caller = "alice" | "bob" | "ops";

/** Both faces, called by the same caller. */
export type FacePair = Readonly<Record<"http" | "grpc", RegistryFaceClient>>;

/** How a service is started. */
export interface ServiceSetup {
  readonly args: readonly string[];
  readonly variables?: Readonly<Record<string, string>>;
  readonly hasTokens?: boolean;
}

const open = "cuIpcOpenMemHandle_v2";
const close = "cuIpcCloseMemHandle";

/** The services that cases run on. */
export const setups = {
  /** Triton's way. */
  shared: {
    args: ["--allow-contents", "--context-linger-secs=0"],
    variables: { CUDASHM_EMULATED_DEVICE_COUNT: "2" },
  },
  sharedByTokens: {
    args: ["--allow-contents", "--unregister-all=own", "--max-owner-bytes=10000"],
    hasTokens: true,
  },
  owned: { args: ["--allow-contents", "--access=owner"], hasTokens: true },
  /** Refuses what it can, and ends orphans at once. */
  strict: { args: ["--unregister-all=none", "--orphan-grace-secs=0"] },
  closed: { args: ["--allow-client-shm=false"] },
  /** Its driver takes its time. */
  slow: { args: [], variables: { CUDASHM_EMULATED_DELAYS: `${open}=700` } },
  /** Its driver refuses every other close. */
  sick: {
    args: ["--allow-contents"],
    variables: { CUDASHM_EMULATED_FAULTS: `${close}@1=1,${close}@3=1` },
  },
} as const satisfies Readonly<Record<string, ServiceSetup>>;

/** How the service is set up that a case runs on. */
export type ServiceName = keyof typeof setups;

const tokenOf = (name: Caller) => `${name}-s3cret-token`;

/** What a call brings that has the token of `name`. */
export function tokenHeaders(name: Caller): SentHeaders {
  keepSecret("a token", Buffer.from(tokenOf(name)));
  return { authorization: `Bearer ${tokenOf(name)}` };
}

/** A service, its clients, and what its driver did. */
export class ServiceUnderTest {
  readonly process: ServiceProcess;
  readonly hasTokens: boolean;
  readonly #calls: ReturnType<typeof callLog>;
  readonly #folder: string;
  readonly #clients = new Map<string, FacePair>();

  private constructor(
    process: ServiceProcess,
    calls: ReturnType<typeof callLog>,
    folder: string,
    hasTokens: boolean,
  ) {
    this.process = process;
    this.hasTokens = hasTokens;
    this.#calls = calls;
    this.#folder = folder;
  }

  static async start({ args, variables = {}, hasTokens = false }: ServiceSetup): Promise<ServiceUnderTest> {
    const folder = mkdtempSync(join(tmpdir(), "cudashm-registry-"));
    const calls = callLog();
    const tokens = hasTokens ? [`--token-file=${tokenFile(folder)}`] : [];
    const process = await startService([...args, ...tokens], { ...variables, ...calls.variables });
    return new ServiceUnderTest(process, calls, folder, hasTokens);
  }

  get grpcPort(): number {
    return Number(this.process.grpcAddress.split(":").at(-1));
  }

  /** Its faces, called with these headers. */
  as(headers: SentHeaders = {}): FacePair {
    const key = JSON.stringify(headers);
    const pair = this.#clients.get(key) ?? {
      http: createHttpRegistryClient(Number(new URL(this.process.httpUrl).port), headers),
      grpc: createGrpcRegistryClient(this.grpcPort, headers),
    };
    this.#clients.set(key, pair);
    return pair;
  }

  /** Its faces, called by one who may do everything. */
  asAdmin(): FacePair {
    return this.as(this.hasTokens ? tokenHeaders("ops") : {});
  }

  /** Handles that its driver has open: opens less closes. */
  openHandles(): number {
    return this.#calls.count(open) - this.#calls.count(close);
  }

  /** Handles that its driver opened. */
  opens(): number {
    return this.#calls.count(open);
  }

  /** Resolves once so many calls are being answered: what waits has begun to. */
  async untilInFlight(count: number): Promise<void> {
    const inFlight = async () => {
      const text = await (await fetch(this.process.metricsUrl)).text();
      const gauges = text.matchAll(/^cudashm_requests_in_flight\{.*\} (\d+)$/gm);
      return [...gauges].reduce((sum, [, value]) => sum + Number(value), 0);
    };
    await expect.poll(inFlight, { interval: 5 }).toBe(count);
  }

  /** Ends it as its users do. Rejects if that is no clean end, or leaves the driver with anything open. */
  async stop(): Promise<void> {
    const { code, signal } = await this.process.stop();
    for (const pair of this.#clients.values()) for (const client of Object.values(pair)) client.close();
    const left = this.openHandles();
    rmSync(this.#folder, { recursive: true });
    this.#calls[Symbol.dispose]();
    if (code !== 0 || left !== 0) {
      throw new Error(`the service ended with ${signal ?? code}, and left ${left} handles open`);
    }
  }
}

/** A token file that names every {@link Caller}. */
function tokenFile(folder: string): string {
  const path = join(folder, "tokens");
  const lines = (["alice", "bob", "ops"] as const).map((name) => {
    const hash = createHash("sha256").update(tokenOf(name)).digest("hex");
    return `${name}: ${hash}${name === "ops" ? " admin" : ""}\n`;
  });
  writeFileSync(path, lines.join(""), { mode: 0o600 });
  return path;
}
