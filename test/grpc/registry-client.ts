import { type CallOptions, Metadata, type ServiceError, type StatusObject, status } from "@grpc/grpc-js";
import { keepSecret, told } from "../helpers/secrets.js";
import { createClient } from "./harness.js";

/** How a call ended, as a client sees it. */
interface End {
  /** Name of the status. */
  readonly code: string;
  readonly text: string;
  readonly trailers: Metadata;
}

/** An answer that is a stream, read as fast as it comes. */
export interface Following {
  // biome-ignore lint/suspicious/noExplicitAny: whatever the other decoder makes of it.
  next(): Promise<any>;
  /** Messages that have come and were not asked for yet. */
  waiting(): number;
  readonly end: Promise<End>;
  cancel(): void;
}

export type Headers = Readonly<Record<string, string>>;

/** A client of cudashm.v1.Registry by proto-loader, which shares nothing with the server's codec. */
export function createRegistryClient(address: string) {
  // biome-ignore lint/suspicious/noExplicitAny: grpc-js types dynamic clients no closer.
  const client = createClient(address, "cudashm.v1.Registry") as any;
  return {
    /** Calls a method of one answer; `response` is undefined if it failed. */
    call: (method: string, request: object = {}, headers: Headers = {}, options: CallOptions = {}) =>
      // biome-ignore lint/suspicious/noExplicitAny: whatever the other decoder makes of it.
      new Promise<{ code: string; text: string; response: any }>((resolve) => {
        client[method](
          request,
          metadataOf(headers),
          options,
          (error: ServiceError | null, response: unknown) => {
            told(error ?? response);
            resolve({ code: status[error?.code ?? 0] ?? "", text: error?.details ?? "", response });
          },
        );
      }),
    /** Begins a call that is answered with a stream. */
    follow: (method: string, request: object = {}, headers: Headers = {}, options: CallOptions = {}) =>
      follow(client[method](request, metadataOf(headers), options)),
    /** Begins an upload. */
    write: (headers: Headers = {}, options: CallOptions = {}) => {
      let done = (_answer: { code: string; text: string; written: string | undefined }) => {};
      const answer = new Promise<{ code: string; text: string; written: string | undefined }>((resolve) => {
        done = resolve;
      });
      const stream = client.WriteContents(
        metadataOf(headers),
        options,
        (error: ServiceError | null, response?: { bytes_written: string }) =>
          done({
            code: status[error?.code ?? 0] ?? "",
            text: error?.details ?? "",
            written: response?.bytes_written,
          }),
      );
      stream.on("error", () => {});
      return { stream, answer };
    },
  };
}

export type RegistryClient = ReturnType<typeof createRegistryClient>;

/** A session that a stream holds, once it has begun. */
export async function hold(client: RegistryClient, request: object = {}, headers: Headers = {}) {
  const stream = client.follow("Hold", request, headers);
  const { session_id: id, secret } = await stream.next();
  keepSecret("a session's secret", Buffer.from(secret));
  return { ...stream, id: id as string, secret: secret as string, headers: { "cudashm-session": secret } };
}

function metadataOf(headers: Headers): Metadata {
  const metadata = new Metadata();
  for (const [key, value] of Object.entries(headers)) metadata.set(key, value);
  return metadata;
}

// biome-ignore lint/suspicious/noExplicitAny: grpc-js types dynamic clients no closer.
function follow(stream: any): Following {
  const messages: unknown[] = [];
  let wake = () => {};
  let isOver = false;
  stream.on("data", (message: unknown) => {
    messages.push(message);
    wake();
  });
  stream.on("error", () => {});
  const end = new Promise<End>((resolve) => {
    stream.on("status", ({ code, details, metadata }: StatusObject) => {
      isOver = true;
      wake();
      told(details);
      resolve({ code: status[code] ?? "", text: details, trailers: metadata });
    });
  });
  return {
    async next() {
      while (messages.length === 0) {
        if (isOver) throw new Error(`the stream is over: ${JSON.stringify(await end)}`);
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      return messages.shift();
    },
    waiting: () => messages.length,
    end,
    cancel: () => stream.cancel(),
  };
}
