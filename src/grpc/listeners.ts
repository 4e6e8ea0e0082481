import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";

/** Sockets that listen on one port of several addresses, and the connections they accepted. */
export interface Listeners {
  readonly port: number;
  /** Accepts nothing more; resolves when the accepted connections are gone too. */
  close(): Promise<void>;
  /** Breaks the accepted connections. */
  destroyConnections(): void;
}

/**
 * Listens on `port` of every address; port 0 takes the same free port on each. Rejects with the system's error
 * if one is taken, and then listens on none.
 *
 * grpc-js could listen by itself, but it is content with one address of several, which would let a second
 * service share `localhost` with a first; and its forced shutdown misses connections while channelz is off.
 */
export async function listenOnAll(
  addresses: readonly string[],
  port: number,
  onConnection: (socket: Socket) => void,
): Promise<Listeners> {
  const servers: Server[] = [];
  const connections = new Set<Socket>();
  const accept = (socket: Socket) => {
    connections.add(socket);
    socket.once("close", () => connections.delete(socket));
    onConnection(socket);
  };
  const close = async () => {
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  };
  let boundPort = port;
  try {
    let unused: unknown;
    for (const address of addresses) {
      const server = await listen(address, boundPort, accept).catch((error: unknown) => {
        if (!isUnusedFamily(error)) throw error;
        unused = error;
        return null;
      });
      if (server === null) continue;
      servers.push(server);
      boundPort = (server.address() as AddressInfo).port;
    }
    if (servers.length === 0) throw unused;
  } catch (error) {
    await close();
    throw error;
  }
  return {
    port: boundPort,
    close,
    destroyConnections: () => {
      for (const socket of connections) socket.destroy();
    },
  };
}

async function listen(host: string, port: number, onConnection: (socket: Socket) => void): Promise<Server> {
  const server = createServer({ noDelay: true }, onConnection);
  server.listen({ host, port });
  await once(server, "listening");
  return server;
}

/** A name may have an address of a family that this machine does not use: fine, if it has another. */
function isUnusedFamily(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === "EADDRNOTAVAIL" || code === "EAFNOSUPPORT";
}
