import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";

/** Sockets that listen on one port of every address of a host. */
export interface Listeners {
  readonly port: number;
  /** Accepts nothing more; resolves when the accepted connections are gone too. */
  close(): Promise<void>;
}

/**
 * Listens on `port` of every address that `host` stands for; port 0 takes the same free port on each. Rejects
 * with the system's error if one is taken, and then listens on none.
 *
 * grpc-js could listen by itself, but it is content with one address of several, which would let a second
 * service share `localhost` with a first.
 */
export async function listenOnAll(
  host: string,
  port: number,
  onConnection: (socket: Socket) => void,
): Promise<Listeners> {
  const servers: Server[] = [];
  const close = async () => {
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  };
  let boundPort = port;
  try {
    let unused: unknown;
    for (const { address } of await lookup(host, { all: true })) {
      const server = await listen(address, boundPort, onConnection).catch((error: unknown) => {
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
  return { port: boundPort, close };
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
