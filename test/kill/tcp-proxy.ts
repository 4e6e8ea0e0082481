import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A way to a service that can be cut, or made to fall silent as when a machine loses its power. */
export interface TcpProxy extends AsyncDisposable {
  /** Such as `127.0.0.1:41234`. */
  readonly address: string;
  /** Ends every connection at once. */
  cut(): void;
  /** From now on neither side hears anything of the other, not even that it is gone. */
  freeze(): void;
}

/** Passes on whatever connects to it to `target`. */
export async function openTcpProxy(target: string): Promise<TcpProxy> {
  const [host = "", port = ""] = target.split(":");
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const service = connect(Number(port), host);
    for (const [from, to] of [
      [client, service],
      [service, client],
    ] as const) {
      sockets.add(from);
      from.on("data", (bytes) => to.write(bytes));
      from.on("error", () => {}).on("close", () => to.destroy());
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut,
    freeze: () => {
      for (const socket of sockets) socket.removeAllListeners("data").removeAllListeners("close").pause();
    },
    [Symbol.asyncDispose]: async () => {
      cut();
      server.close();
      await once(server, "close");
    },
  };
}
