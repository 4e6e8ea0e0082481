import { once } from "node:events";
import { type IncomingMessage, type RequestOptions, request } from "node:http";
import { text } from "node:stream/consumers";
import type { Config } from "../config.js";
import { formatAddress } from "../listen-error.js";
import { type HealthAnswer, type HealthQuestion, reachable } from "./health-answer.js";

/** Asks the HTTP face. Never rejects: whatever goes wrong is an answer. */
export async function askOverHttp(
  config: Config,
  question: HealthQuestion,
  signal: AbortSignal,
): Promise<HealthAnswer> {
  const host = reachable(config.httpAddress);
  const target: RequestOptions = { host, port: config.httpPort, agent: false, signal };
  const where = `http://${formatAddress(host, config.httpPort)}`;
  try {
    const { status } = await get(target, `/v2/health/${question}`);
    if (status === 200) return { healthy: true, text: `${question}: ${where}` };
    return { healthy: false, text: `not ${question}: ${where} answers ${status}${await reason(target)}` };
  } catch (error) {
    return { healthy: false, text: `not ${question}: cannot ask ${where}: ${(error as Error).message}` };
  }
}

/** What the service says of its driver, which is why it is not ready. */
async function reason(target: RequestOptions): Promise<string> {
  try {
    const metadata = JSON.parse((await get(target, "/v2")).body) as { cuda_driver?: unknown };
    return metadata.cuda_driver === undefined ? "" : `; CUDA driver: ${metadata.cuda_driver}`;
  } catch {
    // It was asked for the health, and that is known.
    return "";
  }
}

async function get(target: RequestOptions, path: string): Promise<{ status: number; body: string }> {
  const outgoing = request({ ...target, path });
  const answered = once(outgoing, "response") as Promise<[IncomingMessage]>;
  outgoing.end();
  const [incoming] = await answered;
  return { status: incoming.statusCode ?? 0, body: await text(incoming) };
}
