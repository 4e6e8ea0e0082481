/** A face could not listen: the message says where, why and what to do about it. */
export class ListenError extends Error {
  override readonly name = "ListenError";

  constructor(face: "http" | "grpc", host: string, port: number, cause: unknown) {
    super(`cannot listen on ${formatAddress(host, port)} for ${face}: ${explain(face, cause)}`, { cause });
  }
}

/** `host:port`, with the brackets that an IPv6 address needs. */
export function formatAddress(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

// grpc-js reports a failed bind as text only, so the code is looked for in the text of both.
function explain(face: "http" | "grpc", cause: unknown): string {
  const text = cause instanceof Error ? cause.message : String(cause);
  if (text.includes("EADDRINUSE")) {
    return `the port is in use; stop what uses it or choose another with --${face}-port`;
  }
  if (text.includes("EACCES")) {
    return `this user may not use the port; choose one above 1023 with --${face}-port`;
  }
  if (/EADDRNOTAVAIL|ENOTFOUND|EAI_AGAIN|resolution failed/.test(text)) {
    return `this machine has no such address; choose another with --${face}-address`;
  }
  return text;
}
