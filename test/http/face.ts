import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { connect, type Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { FaceContext, Fault, Readiness } from "../../src/core/face-context.js";
import type { Gate } from "../../src/core/gate.js";
import { RegionRegistry, type RegistryOptions } from "../../src/core/registry.js";
import { createRequestIds } from "../../src/core/request-ids.js";
import { createHttpApp, type HttpApp, type HttpFaceOptions } from "../../src/http/app.js";
import { BodyDrain, type BodyDrainLimits, defaultBodyDrainLimits } from "../../src/http/body-drain.js";
import { type HttpServer, listenHttp } from "../../src/http/server.js";
import type { ListenOptions } from "../../src/listen/listeners.js";
import { type FakeAllocation, FakeDriver } from "../helpers/fake-driver.js";
import { told } from "../helpers/secrets.js";
import { undescribed } from "./described-answer.js";

/** What connections are made of. */
export interface Transport {
  readonly places: ListenOptions;
  /** A client's socket, connecting. */
  connect(port: number): Socket;
}

const tcp: Transport = {
  places: { host: "127.0.0.1", port: 0 },
  connect: (port) => connect(port, "127.0.0.1"),
};

export interface FaceOptions extends Partial<HttpFaceOptions> {
  readonly allowClientShm?: boolean;
  readonly drain?: Partial<BodyDrainLimits>;
  readonly transport?: Transport;
  readonly gate?: Gate;
  readonly maxConnections?: number;
  /** The registry's, besides the driver and the clock. */
  readonly registry?: Partial<RegistryOptions>;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly text: string;
}

export interface Sent {
  readonly body?: string | Uint8Array;
  readonly headers?: Record<string, string>;
}

/** The HTTP face on a real socket over a registry on the fake driver, and clients of it. */
export class Face implements AsyncDisposable {
  readonly driver = new FakeDriver();
  readonly registry: RegionRegistry;
  readonly shutdown = new AbortController();
  readonly faults: Fault[] = [];
  readiness: Readiness = "ready";
  readonly app: HttpApp;
  server!: HttpServer;
  readonly #transport: Transport;

  private constructor(options: FaceOptions) {
    this.#transport = options.transport ?? tcp;
    const { clock } = options;
    this.registry = new RegionRegistry({
      driver: this.driver,
      ...(clock && { clock }),
      ...options.registry,
    });
    const context: FaceContext = {
      registry: this.registry,
      info: {
        name: "cudashm",
        version: "1.2.3",
        extensions: ["cuda_shared_memory"],
        instanceId: "test",
        epoch: 1n,
      },
      readiness: () => this.readiness,
      cudaDriver: () => "emulated",
      allowClientShm: options.allowClientShm ?? true,
      gates: { http: options.gate },
      shutdown: this.shutdown.signal,
      nextRequestId: createRequestIds(),
      reportFault: (fault) => {
        told(fault);
        this.faults.push(fault);
      },
    };
    this.app = createHttpApp(context, {
      allowContents: options.allowContents ?? true,
      maxInputSize: options.maxInputSize ?? 1024 * 1024,
      allowedOrigins: options.allowedOrigins,
      allowedHosts: options.allowedHosts,
      ...(clock && { clock }),
    });
  }

  static async start(options: FaceOptions = {}): Promise<Face> {
    const face = new Face(options);
    const bodyDrain = new BodyDrain({ ...defaultBodyDrainLimits, ...options.drain });
    const { maxConnections } = options;
    face.server = await listenHttp(face.app, { ...face.#transport.places, bodyDrain, maxConnections });
    return face;
  }

  get port(): number {
    return this.server.address?.port ?? 0;
  }

  /** One request on a connection of its own; the path goes out as it is given. */
  send(method: string, path: string, { body, headers = {} }: Sent = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const createConnection = () => this.#transport.connect(this.port);
      const options = { host: "127.0.0.1", method, path, headers, createConnection };
      const outgoing = httpRequest(options, (incoming) => {
        const pieces: Buffer[] = [];
        incoming.on("data", (piece: Buffer) => pieces.push(piece));
        incoming.on("error", reject);
        incoming.on("end", () => {
          const bytes = Buffer.concat(pieces);
          const { statusCode = 0, headers } = incoming;
          const answer = { status: statusCode, headers, bytes, text: bytes.toString() };
          told(answer.text);
          told(incoming.rawHeaders);
          // Every answer that any test gets is one that the OpenAPI document describes.
          const problem = undescribed(method, path, answer);
          if (problem === null) resolve(answer);
          else reject(new Error(`not in the OpenAPI document: ${problem}`));
        });
      });
      outgoing.on("error", reject);
      outgoing.end(body);
    });
  }

  get(path: string): Promise<Answer> {
    return this.send("GET", path);
  }

  post(path: string, body?: string | Uint8Array): Promise<Answer> {
    return this.send("POST", path, body === undefined ? {} : { body });
  }

  register(name: string, body: string | Uint8Array): Promise<Answer> {
    return this.post(`/v2/cudasharedmemory/region/${encodeURIComponent(name)}/register`, body);
  }

  /** Registers the whole of a new allocation and fails loudly if that is refused. */
  async registerNew(name: string, byteSize = 4096): Promise<FakeAllocation> {
    const allocation = this.driver.allocate(byteSize);
    const answer = await this.register(name, registerBody(allocation, byteSize));
    if (answer.status !== 200) throw new Error(`register was refused: ${answer.text}`);
    return allocation;
  }

  /** Names of the regions there are. */
  names(): string[] {
    return this.registry.statuses().map(({ name }) => name);
  }

  open(): Promise<RawConnection> {
    return RawConnection.over(this.#transport.connect(this.port));
  }

  /** Sends bytes as they are on a new connection; gives what came back when the server closed it. */
  async raw(text: string | Uint8Array): Promise<string> {
    const connection = await this.open();
    connection.send(text);
    return connection.untilClosed();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.shutdown.abort();
    await this.server.close(AbortSignal.abort());
    await this.registry.close().catch(() => {});
  }
}

/** A register body as `tritonclient` sends it. */
export function registerBody(allocation: FakeAllocation, byteSize: number | bigint, deviceId = 0): string {
  const b64 = Buffer.from(allocation.handle.exposeBytes()).toString("base64");
  return JSON.stringify({ raw_handle: { b64 }, device_id: deviceId, byte_size: Number(byteSize) });
}

/** A connection that sends what it is told and keeps what it got. */
export class RawConnection {
  readonly socket: Socket;
  #received = "";
  #closed = false;
  #wake: () => void = () => {};

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding("latin1");
    socket.on("data", (piece: string) => {
      this.#received += piece;
      this.#wake();
    });
    // Broken off by the server: whoever waits sees the close.
    socket.on("error", () => {});
    socket.on("close", () => {
      this.#closed = true;
      this.#wake();
    });
  }

  static open(port: number): Promise<RawConnection> {
    return RawConnection.over(tcp.connect(port));
  }

  /** Resolves when `socket` is connected, and through TLS if it is of that. */
  static over(socket: Socket): Promise<RawConnection> {
    return new Promise((resolve, reject) => {
      socket.once("error", reject);
      socket.once(socket instanceof TLSSocket ? "secureConnect" : "connect", () => {
        socket.off("error", reject);
        resolve(new RawConnection(socket));
      });
    });
  }

  send(text: string | Uint8Array): void {
    this.socket.write(text);
  }

  get received(): string {
    return this.#received;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** Waits until what came matches, and takes it; throws if the connection closes first. */
  async until(pattern: RegExp): Promise<string> {
    for (;;) {
      const match = pattern.exec(this.#received);
      if (match !== null) {
        const end = match.index + match[0].length;
        const taken = this.#received.slice(0, end);
        this.#received = this.#received.slice(end);
        return taken;
      }
      if (this.#closed) throw new Error(`closed after ${JSON.stringify(this.#received)}`);
      await this.#change();
    }
  }

  async untilClosed(): Promise<string> {
    while (!this.#closed) await this.#change();
    return this.#received;
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}
