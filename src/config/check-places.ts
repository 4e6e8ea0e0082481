import type { OptionValues } from "./option.js";
import type { socketOptions } from "./socket-options.js";
import type { tlsOptions } from "./tls-options.js";

type Values = OptionValues<typeof tlsOptions & typeof socketOptions> & {
  readonly allowHttp: boolean;
  readonly allowGrpc: boolean;
};

/** One face's share of the options. */
interface Face {
  readonly flags: "--http" | "--grpc";
  readonly tcp: boolean;
  readonly socket: string | null;
  readonly useSsl: boolean;
  readonly mutual: boolean;
  readonly cert: string | null;
  readonly key: string | null;
  readonly roots: string | null;
}

/** What is wrong with TLS and the Unix sockets as they are put together, a sentence each. */
export function placeProblems(values: Values): string[] {
  const faces = facesOf(values);
  const problems = faces.flatMap((face) => [...tcpProblems(face), ...tlsProblems(face)]);
  const [one, other] = faces;
  if (one?.socket != null && one.socket === other?.socket) {
    problems.push(`--http-socket and --grpc-socket are both ${one.socket}: give them different paths`);
  }
  const { socketMode, socketGroup } = values;
  if (socketGroup !== null && socketMode !== null && (socketMode & 0o020) === 0) {
    const mode = socketMode.toString(8).padStart(4, "0");
    problems.push(`--socket-mode ${mode} lets nobody of --socket-group connect: add 0020, or leave one out`);
  }
  return problems;
}

/** What has no effect, a sentence each. */
export function placeWarnings(values: Values): string[] {
  const faces = facesOf(values);
  const warnings = faces
    .filter((face) => face.roots !== null && face.useSsl && !face.mutual)
    .map(
      ({ flags }) =>
        `${flags}-root-cert has no effect without ${flags}-use-ssl-mutual: clients are asked for no certificate`,
    );
  if (faces.some(({ socket }) => socket !== null)) return warnings;
  const ofSockets = { "--socket-mode": values.socketMode, "--socket-group": values.socketGroup };
  for (const [flag, value] of Object.entries(ofSockets)) {
    if (value !== null) warnings.push(`${flag} has no effect without --http-socket or --grpc-socket`);
  }
  return warnings;
}

function facesOf(values: Values): Face[] {
  const http: Face = {
    flags: "--http",
    tcp: values.httpTcp,
    socket: values.httpSocket,
    useSsl: values.httpUseSsl || values.httpUseSslMutual,
    mutual: values.httpUseSslMutual,
    cert: values.httpServerCert,
    key: values.httpServerKey,
    roots: values.httpRootCert,
  };
  const grpc: Face = {
    flags: "--grpc",
    tcp: values.grpcTcp,
    socket: values.grpcSocket,
    useSsl: values.grpcUseSsl || values.grpcUseSslMutual,
    mutual: values.grpcUseSslMutual,
    cert: values.grpcServerCert,
    key: values.grpcServerKey,
    roots: values.grpcRootCert,
  };
  return [...(values.allowHttp ? [http] : []), ...(values.allowGrpc ? [grpc] : [])];
}

function tcpProblems({ flags, tcp, socket, useSsl }: Face): string[] {
  if (tcp) return [];
  if (socket === null) return [`${flags}-tcp=false leaves nothing to listen on: give a ${flags}-socket`];
  if (useSsl) return [`${flags}-use-ssl is for TCP, and ${flags}-tcp=false leaves none: drop one of them`];
  return [];
}

function tlsProblems({ flags, useSsl, mutual, cert, key, roots }: Face): string[] {
  const files = { "server-cert": cert, "server-key": key, "root-cert": roots };
  if (!useSsl) {
    // Whoever gives a certificate believes that there is TLS.
    return Object.entries(files)
      .filter(([, path]) => path !== null)
      .map(([name]) => `${flags}-${name} is given without ${flags}-use-ssl: add that, or drop the file`);
  }
  const needed = ["server-cert", "server-key", ...(mutual ? ["root-cert"] : [])];
  return needed
    .filter((name) => files[name as keyof typeof files] === null)
    .map((name) => `${flags}-use-ssl${mutual ? "-mutual" : ""} needs ${flags}-${name}`);
}
