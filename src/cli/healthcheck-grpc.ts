import { Client, credentials } from "@grpc/grpc-js";
import type { Config } from "../config.js";
import { formatAddress } from "../listen-error.js";
import { type HealthAnswer, type HealthQuestion, reachable } from "./health-answer.js";

const methods = {
  live: "/inference.GRPCInferenceService/ServerLive",
  ready: "/inference.GRPCInferenceService/ServerReady",
} as const;

// Field 1, true: the whole of either answer.
const yes = Buffer.from([0x08, 0x01]);

const asIs = (bytes: Buffer): Buffer => bytes;

/** Asks the gRPC face. Never rejects: whatever goes wrong is an answer. */
export async function askOverGrpc(
  config: Config,
  question: HealthQuestion,
  signal: AbortSignal,
): Promise<HealthAnswer> {
  const where = formatAddress(reachable(config.grpcAddress), config.grpcPort);
  const client = new Client(where, credentials.createInsecure());
  try {
    const answer = await call(client, methods[question], signal);
    if (answer.equals(yes)) return { healthy: true, text: `${question}: gRPC at ${where}` };
    return { healthy: false, text: `not ${question}: gRPC at ${where} says so` };
  } catch (error) {
    return {
      healthy: false,
      text: `not ${question}: cannot ask gRPC at ${where}: ${(error as Error).message}`,
    };
  } finally {
    client.close();
  }
}

function call(client: Client, path: string, signal: AbortSignal): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const running = client.makeUnaryRequest(path, asIs, asIs, Buffer.alloc(0), (error, answer) => {
      if (error === null && answer !== undefined) resolve(answer);
      else reject(error ?? new Error("the answer is empty"));
    });
    signal.addEventListener("abort", () => running.cancel(), { once: true });
  });
}
