import type { Socket } from "node:net";
import { createServer, type SecureContextOptions, type TLSSocket } from "node:tls";

/** What a face shows its clients, and whom it lets in. */
export interface ServerTls {
  /** The certificate and key as they are now, and where `wantsClientCertificate` those who sign clients'. */
  readonly context: SecureContextOptions;
  /** Whether a client must have a certificate. */
  readonly wantsClientCertificate: boolean;
  /** Calls `listener` whenever `context` has changed, until the returned function is called. */
  onChange(listener: () => void): () => void;
  /** Is told why a client did not get through: a code of Node's or OpenSSL's. */
  refused(why: string): void;
}

export interface TlsAcceptor {
  /** Does the handshake on a connection just accepted. */
  accept(socket: Socket): void;
  /** Breaks off the handshakes on their way. */
  close(): void;
}

const handshakeTimeoutMs = 20_000;

/** What the protocol behind the handshake asks for. */
export interface SecureKind {
  /** Its name in TLS. */
  readonly alpn: string;
  /** Whether a client that has said all it has to say still waits for answers. */
  readonly allowHalfOpen: boolean;
}

/**
 * Calls `onSecure` with each connection that has got through the handshake; who does not is let go. A change of
 * `tls` concerns connections to come.
 */
export function createTlsAcceptor(
  tls: ServerTls,
  { alpn, allowHalfOpen }: SecureKind,
  onSecure: (socket: TLSSocket) => void,
): TlsAcceptor {
  const handshakes = new Map<string, Socket>();
  const server = createServer({
    ...secureContext(tls),
    ALPNProtocols: [alpn],
    requestCert: tls.wantsClientCertificate,
    rejectUnauthorized: tls.wantsClientCertificate,
    handshakeTimeout: handshakeTimeoutMs,
  });
  server.on("secureConnection", (socket) => {
    handshakes.delete(peerOf(socket));
    socket.allowHalfOpen = allowHalfOpen;
    // A session of HTTP/2 leaves the errors of its TLS socket to whoever made that.
    socket.on("error", () => {});
    onSecure(socket);
  });
  server.on("tlsClientError", (error: NodeJS.ErrnoException, socket) => {
    socket.destroy();
    // Node closes the connection of whoever shows a certificate that is not wanted, and only then tells of it.
    const { authorizationError } = socket;
    tls.refused(authorizationError ? String(authorizationError) : (error.code ?? error.message));
  });
  const unsubscribe = tls.onChange(() => server.setSecureContext(secureContext(tls)));
  return {
    accept(socket) {
      const peer = peerOf(socket);
      // Who ends in the middle of a handshake has nothing to wait for, and would stay until the timeout.
      socket.allowHalfOpen = false;
      handshakes.set(peer, socket);
      socket.once("close", () => {
        if (handshakes.get(peer) === socket) handshakes.delete(peer);
      });
      server.emit("connection", socket);
    },
    close() {
      unsubscribe();
      for (const socket of handshakes.values()) socket.destroy();
    },
  };
}

function secureContext(tls: ServerTls): SecureContextOptions {
  return { ...tls.context, minVersion: "TLSv1.2" };
}

/** Tells which accepted socket a TLS socket stands on: Node keeps that to itself. */
function peerOf(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort} ${socket.localAddress}`;
}
