import { once } from "node:events";
import { connect } from "node:net";
import fc from "fast-check";
import {
  frame,
  frameType,
  grpcMessage,
  settingsFrame,
  windowUpdateFrame,
} from "../../bench/load/http2-frames.js";

export const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
export const flags = { endStream: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const;
export const types = { ...frameType, priority: 2, pushPromise: 5, continuation: 9 } as const;

/** A header block in which nothing is taken from a table. */
export function headerBlock(headers: readonly (readonly [name: string, value: string])[]): Buffer {
  return Buffer.concat(
    headers.flatMap(([name, value]) => [Buffer.of(0), hpackString(name), hpackString(value)]),
  );
}

function hpackString(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  if (bytes.length < 0x7f) return Buffer.concat([Buffer.of(bytes.length), bytes]);
  const length: number[] = [0x7f];
  let rest = bytes.length - 0x7f;
  for (; rest > 0x7f; rest >>>= 7) length.push((rest & 0x7f) | 0x80);
  return Buffer.concat([Buffer.from([...length, rest]), bytes]);
}

/** The headers of a call as a client sends them. */
export function callHeaders(path: string, more: readonly (readonly [string, string])[] = []) {
  return [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", path],
    [":authority", "127.0.0.1"],
    ["te", "trailers"],
    ["content-type", "application/grpc"],
    ...more,
  ] as readonly (readonly [string, string])[];
}

const status = "/inference.GRPCInferenceService/CudaSharedMemoryStatus";
const path = fc.oneof(
  fc.constantFrom(
    status,
    "/inference.GRPCInferenceService/CudaSharedMemoryRegister",
    "/cudashm.v1.Registry/Watch",
  ),
  fc.constantFrom(
    "/cudashm.v1.Registry/WriteContents",
    "/cudashm.v1.Registry/Hold",
    "/nowhere",
    "",
    "*",
    "/",
    "//",
    "/x/%",
  ),
);
const headerText = fc.oneof(
  fc.constantFrom(
    "",
    "0",
    "identity",
    "gzip",
    "deflate,gzip",
    "snappy",
    "1S",
    "1n",
    "99999999H",
    "-1S",
    "0m",
    "x".repeat(9000),
  ),
  fc.constantFrom(
    "Bearer x",
    "0".repeat(32),
    "AAAA",
    "!!!",
    "\0",
    "a\r\nb: c",
    "\x7f",
    "\u00ff",
    " x ",
    "application/grpc+json",
  ),
);
const header = fc.tuple(
  fc.oneof(
    fc.constantFrom(
      "grpc-timeout",
      "grpc-encoding",
      "grpc-accept-encoding",
      "content-type",
      "cudashm-session",
      "x-request-id",
    ),
    fc.constantFrom(
      "authorization",
      "te",
      "connection",
      "transfer-encoding",
      "content-length",
      "grpc-status",
      "x-bin",
      "host",
    ),
    fc.constantFrom(
      ":path",
      ":method",
      ":unknown",
      ":status",
      "",
      "X-Upper",
      "a b",
      "\0",
      "__proto__",
      "cookie",
      "expect",
    ),
  ),
  headerText,
);
const block = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .tuple(path, fc.array(header, { maxLength: 3 }))
      .map(([where, more]) => headerBlock(callHeaders(where, more))),
  },
  { weight: 1, arbitrary: fc.array(header, { maxLength: 4 }).map(headerBlock) },
  // Anything: indices of tables, cut strings, Huffman codes that are none, tables made larger.
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)) },
);

const prefixed = fc
  .tuple(
    fc.constantFrom(0, 0, 0, 1, 2, 255),
    fc.oneof(fc.constant(null), fc.constantFrom(0, 1, 65_537, 2 ** 31, 2 ** 32 - 1)),
    fc.uint8Array({ maxLength: 30 }),
  )
  .map(([compressed, length, content]) => {
    const message = grpcMessage(content);
    message[0] = compressed;
    if (length !== null) message.writeUInt32BE(length, 1);
    return message;
  });

const anyBytes = fc.uint8Array({ maxLength: 24 }).map((bytes) => Buffer.from(bytes));
const stream = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(1, 3, 5) },
  { weight: 1, arbitrary: fc.constantFrom(0, 2, 4, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1) },
);
const anyFlags = fc.oneof(
  fc.constantFrom(0, flags.endHeaders, flags.endHeaders | flags.endStream, flags.endStream),
  fc.nat(255),
);

const pieces = fc.oneof(
  fc.tuple(stream, anyFlags, block).map(([id, set, bytes]) => frame(types.headers, set, id, bytes)),
  fc.tuple(stream, anyFlags, prefixed).map(([id, set, bytes]) => frame(types.data, set, id, bytes)),
  fc.tuple(stream, anyFlags, block).map(([id, set, bytes]) => frame(types.continuation, set, id, bytes)),
  fc.tuple(fc.nat(12), anyFlags, stream, anyBytes).map((parts) => frame(...parts)),
  fc
    .array(fc.tuple(fc.nat(10), fc.constantFrom(0, 1, 16_384, 65_535, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1)), {
      maxLength: 8,
    })
    .map(settingsFrame),
  fc
    .tuple(stream, fc.constantFrom(0, 1, 65_535, 2 ** 31 - 1, 2 ** 32 - 1))
    .map(([id, bytes]) => windowUpdateFrame(id, bytes)),
  // What its length says is not there, or more than that is.
  fc.tuple(fc.nat(9), stream, fc.nat(2 ** 24 - 1), anyBytes).map(([type, id, length, bytes]) => {
    const lying = frame(type, 0, id, bytes);
    lying.writeUIntBE(length, 0, 3);
    return lying;
  }),
);

/** What a client that knows HTTP/2, but not as it should, might send. */
export const connectionBytes = fc
  .tuple(
    fc.oneof(
      { weight: 8, arbitrary: fc.constant(Buffer.concat([preface, settingsFrame([])])) },
      {
        weight: 1,
        arbitrary: fc.constantFrom(
          Buffer.alloc(0),
          preface,
          preface.subarray(0, 20),
          Buffer.from("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
          Buffer.from("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"),
          Buffer.from([0x16, 3, 1, 2, 0, 1, 0]),
        ),
      },
    ),
    fc.array(pieces, { maxLength: 8 }),
  )
  .map(([start, frames]) => Buffer.concat([start, ...frames]));

/**
 * Sends bytes on a connection of their own until they are all taken, the service closes it or says that it is through
 * with it, then waits for `meanwhile` and leaves. Gives what came back.
 */
export async function sendAndLeave(
  port: number,
  bytes: Buffer,
  meanwhile: () => Promise<void>,
): Promise<Buffer> {
  const socket = connect(port, "127.0.0.1").setNoDelay(true);
  let came = Buffer.alloc(0);
  await new Promise<void>((resolve) => {
    socket.on("data", (piece) => {
      came = Buffer.concat([came, piece]);
      if (framesIn(came).some(({ type }) => type === types.goAway)) resolve();
    });
    // Reset by the service: it had what it needed.
    socket.on("error", () => {});
    socket.on("close", () => resolve());
    socket.write(bytes, () => resolve());
  });
  await meanwhile();
  socket.destroy();
  if (!socket.closed) await once(socket, "close");
  return came;
}

/** The frames that `bytes` begins with. */
export function framesIn(bytes: Buffer): readonly { readonly type: number; readonly stream: number }[] {
  const frames: { readonly type: number; readonly stream: number }[] = [];
  for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) {
    frames.push({ type: bytes[at + 3] ?? 0, stream: bytes.readUInt32BE(at + 5) });
  }
  return frames;
}
