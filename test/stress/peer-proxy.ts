import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export interface PeerProxyOptions {
  /** Bytes of a connection that pass freely from the client to the service; all unless given. */
  readonly up?: number;
  /** The same from the service to the client. */
  readonly down?: number;
  /**
   * What comes after those: a byte a second, or nothing ever again, in neither direction, not even the connection's
   * end, as when a machine loses its power.
   */
  readonly afterwards?: "slow" | "silent";
}

type Afterwards = NonNullable<PeerProxyOptions["afterwards"]>;

const slowMs = 1000;

/** A way to a service for clients that are slow or vanish. What does not pass stays with its sender. */
export class PeerProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(target: string, options: PeerProxyOptions) {
    const { up = Number.POSITIVE_INFINITY, down = Number.POSITIVE_INFINITY, afterwards = "slow" } = options;
    const [host, port] = target.split(":");
    this.#server = createServer({ allowHalfOpen: true }, (client) => {
      const service = connect({ host, port: Number(port), allowHalfOpen: true });
      let isSilent = false;
      const fallSilent = () => {
        isSilent = true;
        for (const direction of directions) direction.stop();
      };
      const directions = [
        new Direction(client, service, up, afterwards, fallSilent),
        new Direction(service, client, down, afterwards, fallSilent),
      ];
      for (const socket of [client, service]) {
        this.#sockets.add(socket);
        socket.setNoDelay().on("error", () => {});
        socket.on("close", () => {
          this.#sockets.delete(socket);
          if (isSilent) return;
          client.destroy();
          service.destroy();
        });
      }
    });
  }

  static async open(target: string, options: PeerProxyOptions = {}): Promise<PeerProxy> {
    const proxy = new PeerProxy(target, options);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  /** Such as `127.0.0.1:41234`. */
  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Ends every connection at once. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, "close");
  }
}

/** One half of a connection. */
class Direction {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #afterwards: Afterwards;
  readonly #fallSilent: () => void;
  #free: number;
  #slow: NodeJS.Timeout | undefined;

  constructor(from: Socket, to: Socket, free: number, afterwards: Afterwards, fallSilent: () => void) {
    this.#from = from;
    this.#to = to;
    this.#free = free;
    this.#afterwards = afterwards;
    this.#fallSilent = fallSilent;
    from.on("readable", this.#pass).on("end", this.#end);
    from.on("close", () => clearInterval(this.#slow));
    to.on("drain", this.#pass);
  }

  stop(): void {
    clearInterval(this.#slow);
    this.#from.off("readable", this.#pass).off("end", this.#end);
    this.#to.off("drain", this.#pass);
  }

  readonly #end = () => this.#to.end();

  readonly #pass = (): void => {
    while (this.#free > 0) {
      // Goes on when there is room again.
      if (this.#to.writableNeedDrain) return;
      const bytes: Buffer | null = this.#from.read();
      if (bytes === null) return;
      const passed = bytes.subarray(0, this.#free);
      if (passed.length < bytes.length) this.#from.unshift(bytes.subarray(passed.length));
      this.#free -= passed.length;
      this.#to.write(passed);
    }
    if (this.#afterwards === "silent") this.#fallSilent();
    else this.#slow ??= setInterval(this.#passOne, slowMs);
  };

  readonly #passOne = (): void => {
    const byte: Buffer | null = this.#from.read(1);
    if (byte !== null) this.#to.write(byte);
  };
}
