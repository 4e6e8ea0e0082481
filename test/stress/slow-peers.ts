import { fileURLToPath } from "node:url";
import { LineProcess } from "../../src/cli/line-process.js";
import type { FaceClient, Memory, Request } from "./answer.js";
import { GrpcFaceClient } from "./grpc-face-client.js";
import { HttpFaceClient } from "./http-face-client.js";
import type { LoadedService } from "./loaded-service.js";
import { PeerProxy, type PeerProxyOptions } from "./peer-proxy.js";

export interface SlowPeersOptions {
  readonly service: LoadedService;
  /** A region much larger than what the system takes for a client that does not read. */
  readonly region: string;
  readonly memory: Memory;
  /** Of each kind. */
  readonly count: number;
}

/** What peers ask for, and how far they get. */
interface Kind extends PeerProxyOptions {
  readonly face: "http" | "grpc";
  readonly wanted: Request;
  /** False where the service has not got enough of it to know that it is a request. */
  readonly isBegun?: false;
}

const stoppedClient = fileURLToPath(new URL("../fixtures/stopped-client.mjs", import.meta.url));
const callsOfStoppedClient = 5;
const writtenBytes = 1024 * 1024;

function kindsOf({ region: name, memory }: SlowPeersOptions): readonly Kind[] {
  const read = { op: "read", name } as const;
  const write = { op: "write", name, bytes: Buffer.alloc(writtenBytes) } as const;
  const watch = { op: "watch" } as const;
  const register = { op: "registerAsTriton", name: "never there", memory } as const;
  const everywhere = (["http", "grpc"] as const).flatMap((face): readonly Kind[] => [
    { face, wanted: read, down: 4096 },
    { face, wanted: read, down: 4096, afterwards: "silent" },
    { face, wanted: watch, down: 512 },
    { face, wanted: watch, down: 512, afterwards: "silent" },
    { face, wanted: write, up: 4096 },
    { face, wanted: write, up: 4096, afterwards: "silent" },
    { face, wanted: register, up: 10, isBegun: false },
    { face, wanted: register, up: 10, afterwards: "silent", isBegun: false },
  ]);
  return [...everywhere, { face: "http", wanted: register, up: 250 }];
}

/** Clients that are as slow, as silent or as dead as clients can be without their connections ending. */
export class SlowPeers implements AsyncDisposable {
  readonly #faces: FaceClient[] = [];
  readonly #proxies: PeerProxy[] = [];
  readonly #calls: Promise<unknown>[] = [];
  #stopped: LineProcess | undefined;

  /** Resolves once the service is at all of them. */
  static async open(options: SlowPeersOptions): Promise<SlowPeers> {
    const peers = new SlowPeers();
    await peers.#open(options);
    return peers;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stopped?.kill("SIGKILL");
    await Promise.all(this.#proxies.map((proxy) => proxy[Symbol.asyncDispose]()));
    for (const face of this.#faces) face[Symbol.dispose]();
    await Promise.all(this.#calls);
  }

  async #open(options: SlowPeersOptions): Promise<void> {
    const { service, region, count } = options;
    const { httpAddress, grpcAddress } = service;
    let begun = callsOfStoppedClient * count;
    for (const { face, wanted, isBegun, ...how } of kindsOf(options)) {
      const proxy = await PeerProxy.open(face === "http" ? httpAddress : grpcAddress, how);
      this.#proxies.push(proxy);
      for (let i = 0; i < count; i++) {
        const client = face === "http" ? new HttpFaceClient(proxy.address) : new GrpcFaceClient(proxy);
        this.#faces.push(client);
        // None is ever answered in full.
        this.#calls.push(client.call(wanted, null, null).catch(() => {}));
      }
      if (isBegun !== false) begun += count;
    }
    const args = [stoppedClient, httpAddress, grpcAddress, region, String(count)];
    this.#stopped = new LineProcess(process.execPath, args);
    await this.#stopped.nextLine();
    process.kill(this.#stopped.pid, "SIGSTOP");
    await service.untilRequests(begun);
  }
}
