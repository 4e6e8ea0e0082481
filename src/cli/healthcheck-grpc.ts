import { readFileSync } from "node:fs";
import { type ChannelCredentials, Client, credentials, Metadata } from "@grpc/grpc-js";
import type { Config } from "../config.js";
import { formatAddress, formatSocket } from "../listen-error.js";
import { type HealthAnswer, type HealthQuestion, reachable } from "./health-answer.js";

const methods = {
  live: "/inference.GRPCInferenceService/ServerLive",
  ready: "/inference.GRPCInferenceService/ServerReady",
} as const satisfies Record<HealthQuestion, string>;

// Field 1, true: the whole of either answer.
const yes = Buffer.from([0x08, 0x01]);

const asIs = (bytes: Buffer): Buffer => bytes;

/** Asks the gRPC face. Never rejects: whatever goes wrong is an answer. */
export async function askOverGrpc(
  config: Config,
  question: HealthQuestion,
  signal: AbortSignal,
): Promise<HealthAnswer> {
  const { grpcSocket, grpcAddress, grpcPort } = config;
  const where =
    grpcSocket === null ? formatAddress(reachable(grpcAddress), grpcPort) : formatSocket(grpcSocket);
  let client: Client | undefined;
  try {
    // Without a name for TLS to ask for, an address would be taken, which is none.
    client = new Client(where, credentialsOf(config), { "grpc.ssl_target_name_override": "localhost" });
    const answer = await call(client, methods[question], restrictedMetadata(config), signal);
    if (answer.equals(yes)) return { healthy: true, text: `${question}: gRPC at ${where}` };
    return { healthy: false, text: `not ${question}: gRPC at ${where} says so` };
  } catch (error) {
    const why = (error as Error).message;
    return { healthy: false, text: `not ${question}: cannot ask gRPC at ${where}: ${why}` };
  } finally {
    client?.close();
  }
}

/** The certificate is for names that clients use, not for this machine's address: whom we reach is known. */
function credentialsOf(config: Config): ChannelCredentials {
  const { grpcUseSsl, grpcUseSslMutual, grpcServerCert, grpcServerKey } = config;
  if (config.grpcSocket !== null || !(grpcUseSsl || grpcUseSslMutual)) return credentials.createInsecure();
  const own =
    grpcUseSslMutual && grpcServerCert !== null && grpcServerKey !== null
      ? { cert: readFileSync(grpcServerCert), key: readFileSync(grpcServerKey) }
      : null;
  return credentials.createSsl(null, own?.key, own?.cert, { rejectUnauthorized: false });
}

function restrictedMetadata({ grpcRestrictedProtocol }: Config): Metadata {
  const metadata = new Metadata();
  for (const { categories, key, value } of grpcRestrictedProtocol) {
    if (categories.includes("health")) metadata.set(`triton-grpc-protocol-${key.toLowerCase()}`, value);
  }
  return metadata;
}

function call(client: Client, path: string, metadata: Metadata, signal: AbortSignal): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const running = client.makeUnaryRequest(path, asIs, asIs, Buffer.alloc(0), metadata, (error, answer) => {
      if (error === null && answer !== undefined) resolve(answer);
      else reject(error ?? new Error("the answer is empty"));
    });
    signal.addEventListener("abort", () => running.cancel(), { once: true });
  });
}
