import type { ClientReadableStream, ServiceError } from "@grpc/grpc-js";
import { keepSecret } from "../helpers/secrets.js";
import type { SentHeaders } from "./face-client.js";
import { connect, metadataOf, refusalOf } from "./registry-channel.js";
import type { FaceRefusal } from "./registry-face-client.js";
import { durationOf, type Message } from "./registry-messages.js";

/** A session that a stream holds. */
export interface HeldSession {
  readonly id: string;
  /** What a call brings that belongs to it. */
  readonly headers: SentHeaders;
  /** Its secret, to go on with it. */
  readonly secret: string;
  /** How the stream ended, once it has. */
  readonly ended: Promise<FaceRefusal>;
  /** Leaves as a client does that is done. */
  cancel(): void;
}

/** Opens a session, or goes on with one. Rejects with the refusal. */
export async function holdSession(
  port: number,
  { resume, grace_ms }: { readonly resume?: string; readonly grace_ms?: number } = {},
  headers: SentHeaders = {},
): Promise<HeldSession> {
  const client = connect(port);
  const request = { resume, resume_grace: durationOf(grace_ms) };
  const stream: ClientReadableStream<Message> = client.Hold(request, metadataOf(headers));
  const ended = new Promise<FaceRefusal>((resolve) => {
    stream.on("error", (error: ServiceError) => resolve(refusalOf(error)));
  }).finally(() => client.close());
  return new Promise((resolve, reject) => {
    void ended.then(reject);
    stream.on("data", ({ session_id: id, secret }) => {
      keepSecret("a session's secret", Buffer.from(secret));
      const own = { ...headers, "cudashm-session": secret };
      resolve({ id, secret, headers: own, ended, cancel: () => stream.cancel() });
    });
  });
}
