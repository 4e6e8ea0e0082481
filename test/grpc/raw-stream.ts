import type { ClientHttp2Session, ClientHttp2Stream, OutgoingHttpHeaders } from "node:http2";
import { status } from "@grpc/grpc-js";

/** A call by plain HTTP/2: it reads what it is told to and no more. */
export interface RawStream {
  pause(): void;
  resume(): void;
  /** Sends another message. */
  send(message: Uint8Array): void;
  readonly stream: ClientHttp2Stream;
  /** Bytes that were read. */
  readonly received: () => number;
  /** How it ended; with code "" if its connection broke. */
  readonly status: Promise<{ readonly code: string; readonly text: string }>;
}

/** Calls a method with one message; leaves the client's side open if there are more to come. */
export function callRaw(
  session: ClientHttp2Session,
  path: string,
  message: Uint8Array,
  { headers = {}, endStream = true }: { headers?: OutgoingHttpHeaders; endStream?: boolean } = {},
): RawStream {
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
    ...headers,
  });
  stream.on("error", () => {});
  let received = 0;
  stream.on("data", (bytes: Buffer) => {
    received += bytes.length;
  });
  const ended = new Promise<{ code: string; text: string }>((resolve) => {
    const tell = (fields: Record<string, unknown>) => {
      if (fields["grpc-status"] === undefined) return;
      resolve({
        code: status[Number(fields["grpc-status"])] ?? "",
        text: decodeURI(String(fields["grpc-message"] ?? "")),
      });
    };
    stream.on("response", tell);
    stream.on("trailers", tell);
    stream.on("close", () => resolve({ code: "", text: "" }));
  });
  stream.write(frameOf(message));
  if (endStream) stream.end();
  return {
    stream,
    pause: () => stream.pause(),
    resume: () => stream.resume(),
    send: (next) => stream.write(frameOf(next)),
    received: () => received,
    status: ended,
  };
}

/** `message` as it travels: a flag for "not compressed" and its length before it. */
function frameOf(message: Uint8Array): Buffer {
  const frame = Buffer.alloc(5 + message.length);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, 5);
  return frame;
}
