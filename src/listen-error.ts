import { UnixSocketError } from "./listen/unix-socket.js";

/** What listens, as its flags begin. */
export type FaceName = "http" | "grpc" | "metrics";

/** A face could not listen: the message says where, why and what to do about it. */
export class ListenError extends Error {
  override readonly name = "ListenError";

  constructor(face: FaceName, host: string, port: number, cause: unknown) {
    const where = cause instanceof UnixSocketError ? formatSocket(cause.path) : formatAddress(host, port);
    super(`cannot listen on ${where} for ${face}: ${explain(face, cause)}`, { cause });
  }
}

/** `host:port`, with the brackets that an IPv6 address needs. */
export function formatAddress(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** A Unix socket as gRPC's clients write it. */
export function formatSocket(path: string): string {
  return `unix:${path}`;
}

function explain(face: FaceName, cause: unknown): string {
  const { code, message } = cause as NodeJS.ErrnoException;
  switch (code) {
    case "EADDRINUSE":
      return `the port is in use; stop what uses it or choose another with --${face}-port`;
    case "EACCES":
      return `this user may not use the port; choose one above 1023 with --${face}-port`;
    // The last one is a link-local address without the interface that it is on.
    case "EADDRNOTAVAIL":
    case "EAFNOSUPPORT":
    case "EINVAL":
      return `this machine has no such address; choose another with --${face}-address`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `the name cannot be resolved to an address; choose another with --${face}-address`;
    default:
      return message;
  }
}
