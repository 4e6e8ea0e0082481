import { readFile } from "node:fs/promises";
import { UsageError } from "./config/usage-error.js";
import type { Config } from "./config.js";
import type { ListenOptions } from "./listen/listeners.js";
import { TlsFiles } from "./listen/tls-files.js";
import { TlsError, type TlsPart } from "./listen/tls-material.js";
import type { UnixSocketOptions } from "./listen/unix-socket.js";

/** Where a face listens and how, with its files read. */
export interface ListenPlace extends ListenOptions {
  readonly tls: TlsFiles | undefined;
}

export interface ListenPlaces {
  readonly http: ListenPlace;
  readonly grpc: ListenPlace;
}

/** Reads the files that the places in `config` need. Rejects with one UsageError that has every problem. */
export async function readListenPlaces(config: Config): Promise<ListenPlaces> {
  const problems: string[] = [];
  const needsGroup =
    (config.allowHttp && config.httpSocket !== null) || (config.allowGrpc && config.grpcSocket !== null);
  const gid = needsGroup ? await groupId(config.socketGroup, problems) : null;
  const mode = config.socketMode ?? (config.socketGroup === null ? 0o600 : 0o660);
  const socket = (path: string | null): UnixSocketOptions | undefined =>
    path === null ? undefined : { path, mode, gid };
  const places = {
    http: {
      host: config.httpTcp ? config.httpAddress : null,
      port: config.httpPort,
      unixSocket: socket(config.httpSocket),
      tls: config.allowHttp ? await openHttpTls(config, problems) : undefined,
    },
    grpc: {
      host: config.grpcTcp ? config.grpcAddress : null,
      port: config.grpcPort,
      unixSocket: socket(config.grpcSocket),
      tls: config.allowGrpc ? await openGrpcTls(config, problems) : undefined,
    },
  };
  if (problems.length > 0) throw new UsageError(problems);
  return places;
}

function openHttpTls(config: Config, problems: string[]): Promise<TlsFiles | undefined> {
  const { httpUseSsl: useSsl, httpUseSslMutual: mutual } = config;
  const { httpServerCert: cert, httpServerKey: key, httpRootCert: roots } = config;
  return openTls("http", { useSsl, mutual, cert, key, roots }, problems);
}

function openGrpcTls(config: Config, problems: string[]): Promise<TlsFiles | undefined> {
  const { grpcUseSsl: useSsl, grpcUseSslMutual: mutual } = config;
  const { grpcServerCert: cert, grpcServerKey: key, grpcRootCert: roots } = config;
  return openTls("grpc", { useSsl, mutual, cert, key, roots }, problems);
}

interface TlsFlags {
  readonly useSsl: boolean;
  readonly mutual: boolean;
  readonly cert: string | null;
  readonly key: string | null;
  readonly roots: string | null;
}

const flagOfPart = {
  certificate: "server-cert",
  key: "server-key",
  clientRoots: "root-cert",
} as const satisfies Record<TlsPart, string>;

async function openTls(
  face: "http" | "grpc",
  { useSsl, mutual, cert, key, roots }: TlsFlags,
  problems: string[],
): Promise<TlsFiles | undefined> {
  if (!(useSsl || mutual) || cert === null || key === null) return undefined;
  try {
    return await TlsFiles.open({ certificate: cert, key, clientRoots: mutual ? roots : null });
  } catch (error) {
    if (!(error instanceof TlsError)) throw error;
    problems.push(...error.problems.map(({ part, text }) => `--${face}-${flagOfPart[part]}: ${text}`));
    return undefined;
  }
}

/** The number of a group of this machine, as /etc/group has it. */
async function groupId(group: string | null, problems: string[]): Promise<number | null> {
  if (group === null) return null;
  if (/^\d+$/.test(group)) return Number(group);
  const lines = (await readFile("/etc/group", "utf8").catch(() => "")).split("\n");
  const gid = lines.map((line) => line.split(":")).find(([name]) => name === group)?.[2];
  if (gid !== undefined) return Number(gid);
  problems.push(`--socket-group: /etc/group has no group ${group}; give its number`);
  return null;
}
