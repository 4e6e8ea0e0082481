import type { ClientReadableStream, ServiceError } from "@grpc/grpc-js";
import { keepSecret } from "../helpers/secrets.js";
import { metadataOf, registryClient } from "./grpc-client.js";

/** A session that a stream of this process holds, or held. */
export interface HeldSession {
  readonly id: string;
  readonly secret: string;
  readonly graceSeconds: number;
  /** Who opened it. */
  readonly token: string | null;
}

/** A stream that holds a session. */
export interface HoldStream {
  readonly session: HeldSession;
  /** The gRPC status that it ended with, once it has. */
  readonly ended: Promise<number>;
  cancel(): void;
}

/** Opens a session at a service, or goes on with one. Rejects with gRPC's error. */
export function holdSession(
  address: string,
  token: string | null,
  how: { readonly graceSeconds: number } | { readonly resume: HeldSession },
): Promise<HoldStream> {
  const client = registryClient(address);
  const request =
    "resume" in how
      ? { resume: how.resume.secret }
      : { resume_grace: { seconds: Math.floor(how.graceSeconds), nanos: (how.graceSeconds % 1) * 1e9 } };
  const stream = client.Hold(request, metadataOf({ token, session: null }));
  const ended = untilEnded(stream).finally(() => client.close());
  return new Promise((resolve, reject) => {
    stream.on("data", ({ session_id: id, secret }: { session_id: string; secret: string }) => {
      keepSecret("a session's secret", Buffer.from(secret, "latin1"));
      const graceSeconds = "resume" in how ? how.resume.graceSeconds : how.graceSeconds;
      const session = { id, secret, graceSeconds, token };
      resolve({ session, ended: ended.then(({ code }) => code), cancel: () => stream.cancel() });
    });
    void ended.then(reject);
  });
}

function untilEnded(stream: ClientReadableStream<unknown>): Promise<ServiceError> {
  return new Promise((resolve) => {
    stream.on("error", (error: ServiceError) => resolve(error));
  });
}
