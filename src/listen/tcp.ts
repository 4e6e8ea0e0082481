import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type ServerOpts, type Socket } from "node:net";

/** Sockets that listen on one port of several addresses. */
export interface TcpListeners {
  readonly servers: readonly Server[];
  readonly port: number;
}

/**
 * Listens on `port` of every address of `host`; port 0 takes the same free port on each. Rejects with the
 * system's error if one is taken, and then listens on none.
 *
 * The servers of a face could listen by themselves, but they are content with one address of several, which
 * would let a second service share `localhost` with a first.
 */
export async function listenTcp(
  host: string,
  port: number,
  options: ServerOpts,
  onConnection: (socket: Socket) => void,
): Promise<TcpListeners> {
  const addresses = (await lookup(host, { all: true })).map(({ address }) => address);
  return listenOnAll(addresses, port, options, onConnection);
}

/** As `listenTcp`, for addresses that are known. */
export async function listenOnAll(
  addresses: readonly string[],
  port: number,
  options: ServerOpts,
  onConnection: (socket: Socket) => void,
): Promise<TcpListeners> {
  const servers: Server[] = [];
  let boundPort = port;
  let unused: unknown;
  try {
    for (const host of addresses) {
      const server = createServer(options, onConnection);
      try {
        await listening(server.listen({ host, port: boundPort }));
      } catch (error) {
        if (!isUnusedFamily(error)) throw error;
        unused = error;
        continue;
      }
      servers.push(server);
      boundPort = (server.address() as AddressInfo).port;
    }
    if (servers.length === 0) throw unused;
  } catch (error) {
    await Promise.all(servers.map(closed));
    throw error;
  }
  return { servers, port: boundPort };
}

/** Resolves when `server` listens; rejects with the system's error if it cannot. */
export async function listening(server: Server): Promise<void> {
  await once(server, "listening");
}

/** Stops `server` accepting; resolves when the connections that it accepted are gone too. */
export function closed(server: Server): Promise<unknown> {
  return new Promise((resolve) => server.close(resolve));
}

/** A name may have an address of a family that this machine does not use: fine, if it has another. */
function isUnusedFamily(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === "EADDRNOTAVAIL" || code === "EAFNOSUPPORT";
}
