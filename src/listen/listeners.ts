import type { Server, Socket } from "node:net";
import { closed, listenTcp } from "./tcp.js";
import { createTlsAcceptor, type SecureKind, type ServerTls } from "./tls.js";
import { listenUnix, type UnixSocketOptions } from "./unix-socket.js";

export interface ListenOptions {
  /** An address, or a name all of whose addresses are listened on; null listens on no port. */
  readonly host: string | null;
  /** 0 takes a free one, the same on every address. */
  readonly port: number;
  /** Left out, connections by TCP are plain. Those by the Unix socket always are. */
  readonly tls?: ServerTls | undefined;
  readonly unixSocket?: UnixSocketOptions | undefined;
  /** Connections there may be at once; no limit if left out. */
  readonly maxConnections?: number | undefined;
}

/** What the protocol that is spoken on the connections asks for. */
export interface ConnectionKind extends SecureKind {
  readonly alpn: "h2" | "http/1.1";
  /** Ends a connection that is one too many, where there is something to tell it. */
  readonly refuse?: ((socket: Socket) => void) | undefined;
}

/** The places that a face listens on, and the connections accepted there. */
export interface Listeners {
  /** Null if there is no port. */
  readonly address: { readonly host: string; readonly port: number } | null;
  /** Accepts nothing more, lets go of who has not got through TLS; resolves when every connection is gone. */
  close(): Promise<void>;
  /** Breaks the accepted connections. */
  destroyConnections(): void;
}

/**
 * Listens on everything in `options` and calls `onConnection` with each connection, through TLS where there is
 * any, and with where it came by. Rejects with UnixSocketError or the system's error if one place is not to be
 * had, and then listens on none.
 *
 * The faces' own servers never listen: one way of listening serves both, and their forced shutdowns miss
 * connections, grpc-js's while channelz is off and Node's those in the middle of a TLS handshake.
 */
export async function openListeners(
  options: ListenOptions,
  { alpn, allowHalfOpen, refuse }: ConnectionKind,
  onConnection: (socket: Socket, by: "tcp" | "unix") => void,
): Promise<Listeners> {
  const connections = new Set<Socket>();
  const { maxConnections = Number.POSITIVE_INFINITY } = options;
  const tracked = (accept: (socket: Socket) => void, isTls: boolean) => (socket: Socket) => {
    if (connections.size >= maxConnections) {
      if (refuse === undefined || isTls) socket.destroy();
      else refuse(socket);
      return;
    }
    connections.add(socket);
    socket.once("close", () => connections.delete(socket));
    accept(socket);
  };
  const onTcp = (socket: Socket) => onConnection(socket, "tcp");
  const onUnix = (socket: Socket) => onConnection(socket, "unix");
  const tls = options.tls && createTlsAcceptor(options.tls, { alpn, allowHalfOpen }, onTcp);
  const socketOptions = { allowHalfOpen, noDelay: true };

  const servers: Server[] = [];
  let address: Listeners["address"] = null;
  let removeSocket = () => {};
  const close = async () => {
    removeSocket();
    const gone = Promise.all(servers.map(closed));
    tls?.close();
    await gone;
  };
  try {
    if (options.unixSocket !== undefined) {
      const socket = await listenUnix(options.unixSocket, socketOptions, tracked(onUnix, false));
      removeSocket = socket.remove;
      servers.push(socket.server);
    }
    if (options.host !== null) {
      const accept = tracked(tls?.accept ?? onTcp, tls !== undefined);
      const tcp = await listenTcp(options.host, options.port, socketOptions, accept);
      servers.push(...tcp.servers);
      address = { host: options.host, port: tcp.port };
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    address,
    close,
    destroyConnections: () => {
      for (const socket of connections) socket.destroy();
    },
  };
}
