import { expect, vi } from "vitest";
import type { FaceContext } from "../../src/core/face-context.js";
import { IpcMemHandle } from "../../src/core/handle.js";
import type { RegionRecord } from "../../src/core/journal.js";
import { RegionRegistry } from "../../src/core/registry.js";
import { createFaceContext } from "../../src/create-face-context.js";
import { listenGrpc } from "../../src/grpc/server.js";
import { createHttpApp } from "../../src/http/app.js";
import { listenHttp } from "../../src/http/server.js";
import { FaceRefusal, type RegistryFaceClient } from "../contract/registry-face-client.js";
import type { Memory } from "../contract/registry-fixture.js";
import { createGrpcRegistryClient } from "../contract/registry-grpc-client.js";
import { createHttpRegistryClient } from "../contract/registry-http-client.js";
import { FakeJournal } from "../helpers/fake-journal.js";
import { told } from "../helpers/secrets.js";
import { FaultyDriver, type FaultyDriverOptions } from "./faulty-driver.js";

export const faces = ["http", "grpc"] as const;
export type FaceName = (typeof faces)[number];

const opened = "cuIpcOpenMemHandle_v2";
const closed = "cuIpcCloseMemHandle";
const retained = "cuDevicePrimaryCtxRetain";
const released = "cuDevicePrimaryCtxRelease_v2";

const lookOften = { interval: 1, timeout: 10_000 };

/** The registrations of earlier processes have lower numbers. */
const firstGeneration = 1_000_000n;

/** What an adoption that is refused has in the place of a code. */
export const notAdopted = "not adopted";

/** Both faces over one registry, in this process, on a driver whose calls can be made to fail. */
export class FaultyService implements AsyncDisposable {
  readonly faulty: FaultyDriver;
  readonly registry: RegionRegistry;
  readonly journal: FakeJournal;
  readonly clients: Readonly<Record<FaceName, RegistryFaceClient>>;
  readonly #stop: () => Promise<void>;
  #adopted = 0n;

  private constructor(
    parts: Pick<FaultyService, "faulty" | "registry" | "journal" | "clients">,
    stop: () => Promise<void>,
  ) {
    this.faulty = parts.faulty;
    this.registry = parts.registry;
    this.journal = parts.journal;
    this.clients = parts.clients;
    this.#stop = stop;
  }

  static async start(options: FaultyDriverOptions = {}): Promise<FaultyService> {
    const faulty = await FaultyDriver.start(options);
    const { driver } = faulty;
    const journal = new FakeJournal();
    const registry = new RegionRegistry({ driver, journal, generation: firstGeneration });
    const shutdown = new AbortController();
    const reportFault: FaceContext["reportFault"] = ({ error }) => told(error);
    const context = createFaceContext({ driver, registry, shutdown: shutdown.signal, reportFault });
    const place = { host: "127.0.0.1", port: 0 };
    const http = await listenHttp(createHttpApp(context, { allowContents: true }), place);
    const grpc = await listenGrpc(context, { ...place, allowContents: true });
    const clients = {
      http: createHttpRegistryClient(http.address?.port ?? 0),
      grpc: createGrpcRegistryClient(grpc.address?.port ?? 0),
    };
    return new FaultyService({ faulty, registry, journal, clients }, async () => {
      clients.grpc.close();
      shutdown.abort();
      await Promise.all([http.close(AbortSignal.abort()), grpc.close(AbortSignal.abort())]);
      // A driver that is lost takes nothing back.
      await registry.close().catch(() => {});
      faulty[Symbol.dispose]();
    });
  }

  /** Handles that the driver opened and has not got back. */
  openHandles(): number {
    const calls = this.faulty.allCalls();
    return calls.count(opened) - calls.count(closed);
  }

  /** Contexts that the driver gave and has not got back. */
  heldContexts(): number {
    const calls = this.faulty.allCalls();
    return calls.count(retained) - calls.count(released);
  }

  async untilNoContextIsHeld(): Promise<void> {
    await vi.waitFor(() => expect(this.heldContexts()).toBe(0), lookOften);
  }

  /** How often the driver was asked to take a context back. */
  releases(): number {
    const calls = this.faulty.allCalls();
    return calls.count(released) + calls.refused(released);
  }

  async untilReleases(count: number): Promise<void> {
    await vi.waitFor(() => expect(this.releases()).toBe(count), lookOften);
  }

  async untilPinned(name: string): Promise<void> {
    await vi.waitFor(() => expect(this.registry.status(name).pins).toBe(1), lookOften);
  }

  /** Waits until a region is gone, or could not be closed. */
  async untilSettled(name: string): Promise<void> {
    await vi.waitFor(() => {
      const region = this.registry.statuses().find((each) => each.name === name);
      expect(region?.state ?? "close_failed").toBe("close_failed");
    }, lookOften);
  }

  /** Takes up a region of an earlier process. Rejects with why it cannot. */
  async adopt(name: string, memory: Memory): Promise<void> {
    const [device] = await this.faulty.driver.devices();
    const { raw_handle, byte_size: byteSize } = memory.part();
    const record: RegionRecord = {
      generation: ++this.#adopted,
      name,
      handle: new IpcMemHandle(raw_handle),
      deviceId: 0,
      deviceUuid: device?.uuid ?? "",
      byteSize,
      offset: 0n,
      owner: "anonymous",
      session: null,
      protocol: "http",
      registeredAt: 0,
      leaseMs: null,
      exporter: null,
      labels: new Map(),
    };
    await this.journal.registered(record);
    const options = { whenUsable: Promise.resolve(), allowsUnverified: true };
    const refusal = await this.registry.adopt(record, options);
    if (refusal === null) return;
    // Whether the next process may try again is not the matter here.
    await this.journal.left(record.generation);
    throw new FaceRefusal(notAdopted, refusal.reason);
  }

  /** Whether it is ready, as both faces tell it. */
  async isReady(): Promise<boolean> {
    const [http, grpc] = await Promise.all(faces.map((face) => this.clients[face].triton.ready()));
    expect(grpc).toBe(http);
    return http === true;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stop();
  }
}
