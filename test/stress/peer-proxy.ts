import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** How many bytes pass freely in each direction of a connection; those after them come slowly. */
export interface FreeBytes {
  /** From the client to the service. */
  readonly up?: number;
  /** From the service to the client. */
  readonly down?: number;
}

/** A byte a second, once there are no free ones left. */
const slowMs = 1000;

/**
 * A way to a service for clients that are slow, fall silent or vanish. What is not passed on stays with its sender:
 * nothing is gathered here.
 */
export class PeerProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Direction, Direction]>();
  #isFrozen = false;

  private constructor(
    target: string,
    { up = Number.POSITIVE_INFINITY, down = Number.POSITIVE_INFINITY }: FreeBytes,
  ) {
    const [host = "", port = ""] = target.split(":");
    // Whoever half-closes is passed on as that.
    this.#server = createServer({ allowHalfOpen: true }, (client) => {
      const service = connect({ host, port: Number(port), allowHalfOpen: true });
      const pair = [new Direction(client, service, up), new Direction(service, client, down)] as const;
      this.#pairs.add(pair);
      const close = () => {
        if (this.#isFrozen) return;
        this.#pairs.delete(pair);
        client.destroy();
        service.destroy();
      };
      for (const socket of [client, service])
        socket
          .setNoDelay()
          .on("error", () => {})
          .on("close", close);
    });
  }

  static async open(target: string, free: FreeBytes = {}): Promise<PeerProxy> {
    const proxy = new PeerProxy(target, free);
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
    for (const [one] of this.#pairs) one.destroy();
  }

  /** From now on neither side hears anything of the other, not even that it is gone. */
  freeze(): void {
    this.#isFrozen = true;
    for (const pair of this.#pairs) for (const direction of pair) direction.freeze();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isFrozen = false;
    this.cut();
    this.#server.close();
    await once(this.#server, "close");
  }
}

/** One half of a connection. */
class Direction {
  readonly #from: Socket;
  readonly #to: Socket;
  #free: number;
  #slow: NodeJS.Timeout | undefined;

  constructor(from: Socket, to: Socket, free: number) {
    this.#from = from;
    this.#to = to;
    this.#free = free;
    from
      .on("readable", this.#pass)
      .on("end", this.#end)
      .on("close", () => clearInterval(this.#slow));
    to.on("drain", this.#pass);
  }

  freeze(): void {
    clearInterval(this.#slow);
    this.#from.off("readable", this.#pass).off("end", this.#end);
    this.#to.off("drain", this.#pass);
  }

  destroy(): void {
    this.#from.destroy();
    this.#to.destroy();
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
    this.#slow ??= setInterval(() => {
      const bytes: Buffer | null = this.#from.read(1);
      if (bytes !== null) this.#to.write(bytes);
    }, slowMs);
  };
}
