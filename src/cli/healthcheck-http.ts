import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type IncomingMessage, request as requestPlain } from "node:http";
import { type RequestOptions, request as requestTls } from "node:https";
import { text } from "node:stream/consumers";
import type { Config } from "../config.js";
import { formatAddress, formatSocket } from "../listen-error.js";
import { type HealthAnswer, type HealthQuestion, reachable } from "./health-answer.js";

type Ask = (path: string) => Promise<{ readonly status: number; readonly body: string }>;

/** Asks the HTTP face. Never rejects: whatever goes wrong is an answer. */
export async function askOverHttp(
  config: Config,
  question: HealthQuestion,
  signal: AbortSignal,
): Promise<HealthAnswer> {
  const where = placeOf(config);
  try {
    const ask = askerOf(config, signal);
    const { status } = await ask(`/v2/health/${question}`);
    if (status === 200) return { healthy: true, text: `${question}: ${where}` };
    return { healthy: false, text: `not ${question}: ${where} answers ${status}${await reason(ask)}` };
  } catch (error) {
    const why = signal.aborted
      ? "it gave no answer in time"
      : `${(error as Error).message}${certificateHint(config, error as NodeJS.ErrnoException)}`;
    return { healthy: false, text: `not ${question}: cannot ask ${where}: ${why}` };
  }
}

/** A certificate that the service does not take is all that a connection cut off within TLS can mean to a client. */
function certificateHint(
  { httpUseSslMutual, httpSocket }: Config,
  { code = "" }: NodeJS.ErrnoException,
): string {
  const isCutOff = code === "ECONNRESET" || code.startsWith("ERR_SSL_");
  if (!httpUseSslMutual || httpSocket !== null || !isCutOff) return "";
  return "; the service's own certificate was shown: it has to be good for clients too, or give the service a --http-socket";
}

/** The socket where there is one: it needs no certificate, also where clients by TCP do. */
function placeOf(config: Config): string {
  if (config.httpSocket !== null) return formatSocket(config.httpSocket);
  const address = formatAddress(reachable(config.httpAddress), config.httpPort);
  return `${usesTls(config) ? "https" : "http"}://${address}`;
}

function askerOf(config: Config, signal: AbortSignal): Ask {
  const common = { agent: false, signal, headers: { host: "localhost", ...restrictedHeaders(config) } };
  if (config.httpSocket !== null) {
    const options = { ...common, socketPath: config.httpSocket };
    return (path) => get(requestPlain, { ...options, path });
  }
  const options = { ...common, host: reachable(config.httpAddress), port: config.httpPort };
  if (!usesTls(config)) return (path) => get(requestPlain, { ...options, path });
  const tls = tlsOf(config);
  return (path) => get(requestTls, { ...options, ...tls, path });
}

function usesTls({ httpUseSsl, httpUseSslMutual }: Config): boolean {
  return httpUseSsl || httpUseSslMutual;
}

/** The certificate is for names that clients use, not for this machine's address: whom we reach is known. */
function tlsOf({ httpUseSslMutual, httpServerCert, httpServerKey }: Config): RequestOptions {
  const own =
    httpUseSslMutual && httpServerCert !== null && httpServerKey !== null
      ? { cert: readFileSync(httpServerCert), key: readFileSync(httpServerKey) }
      : {};
  return { rejectUnauthorized: false, ...own };
}

function restrictedHeaders({ httpRestrictedApi }: Config): Record<string, string> {
  const forHealth = httpRestrictedApi.filter(({ categories }) => categories.includes("health"));
  return Object.fromEntries(forHealth.map(({ key, value }) => [key.toLowerCase(), value]));
}

/** What the service says of its driver, which is why it is not ready. */
async function reason(ask: Ask): Promise<string> {
  try {
    const metadata = JSON.parse((await ask("/v2")).body) as { cuda_driver?: unknown };
    return metadata.cuda_driver === undefined ? "" : `; CUDA driver: ${metadata.cuda_driver}`;
  } catch {
    // It was asked for the health, and that is known.
    return "";
  }
}

async function get(request: typeof requestTls, options: RequestOptions): ReturnType<Ask> {
  const outgoing = request(options);
  const answered = once(outgoing, "response") as Promise<[IncomingMessage]>;
  outgoing.end();
  const [incoming] = await answered;
  return { status: incoming.statusCode ?? 0, body: await text(incoming) };
}
