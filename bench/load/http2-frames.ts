/** What of HTTP/2 (RFC 9113) and HPACK (RFC 7541) a gRPC client needs that sends the same bytes again and again. */
export const frameType = {
  data: 0,
  headers: 1,
  resetStream: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
} as const;

export const endStream = 0x1;
export const acknowledge = 0x1;
const endHeaders = 0x4;

export const frameHeadBytes = 9;
/** Largest payload that every peer takes. */
export const maxPayloadBytes = 16_384;
/** What a window has that nobody has changed, and the most that it can have. */
export const initialWindow = 65_535;
export const largestWindow = 2 ** 31 - 1;

export function frame(type: number, flags: number, streamId: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(frameHeadBytes + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.writeUInt32BE(streamId, 5);
  bytes.set(payload, frameHeadBytes);
  return bytes;
}

export function settingsFrame(settings: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.alloc(settings.length * 6);
  for (const [at, [id, value]] of settings.entries()) {
    payload.writeUInt16BE(id, at * 6);
    payload.writeUInt32BE(value, at * 6 + 2);
  }
  return frame(frameType.settings, 0, 0, payload);
}

export function windowUpdateFrame(streamId: number, bytes: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes);
  return frame(frameType.windowUpdate, 0, streamId, payload);
}

/** The HEADERS frame of a gRPC call, on stream 0: its sender puts the stream in. No header enters a table. */
export function requestHeaders(path: string): Buffer {
  const [methodPost, schemeHttp, pathIndex, authorityIndex] = [0x83, 0x86, 0x04, 0x01];
  const block = Buffer.concat([
    Buffer.of(methodPost, schemeHttp),
    Buffer.of(pathIndex),
    hpackString(path),
    Buffer.of(authorityIndex),
    hpackString("127.0.0.1"),
    literal("te", "trailers"),
    literal("content-type", "application/grpc"),
    literal("user-agent", "grpc-bench/1"),
    literal("grpc-accept-encoding", "identity,deflate,gzip"),
  ]);
  return frame(frameType.headers, endHeaders, 0, block);
}

function literal(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.of(0), hpackString(name), hpackString(value)]);
}

function hpackString(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  if (bytes.length > 126) throw new RangeError(`longer than the benchmark's headers are: ${text}`);
  return Buffer.concat([Buffer.of(bytes.length), bytes]);
}

/** A gRPC message as its length and its bytes. */
export function grpcMessage(message: Uint8Array): Buffer {
  const bytes = Buffer.alloc(5 + message.length);
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, 5);
  return bytes;
}

const plainName = Buffer.from("grpc-status");
const huffmanName = Buffer.from("9acac8b21234da8f", "hex");

/** The `grpc-status` of a header block that was encoded without a table, or null if it has none. */
export function grpcStatus(block: Buffer): string | null {
  for (const name of [plainName, huffmanName]) {
    const at = block.indexOf(name);
    if (at < 0) continue;
    const value = at + name.length;
    const length = block[value] ?? 0;
    // As a Huffman code no status is shorter, so nobody sends it as one but for "0".
    if (length >= 0x80) return block[value + 1] === 0x07 ? "0" : "unknown";
    return block.toString("latin1", value + 1, value + 1 + length);
  }
  return null;
}
