import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { GrpcUpload } from "./grpc-upload.js";
import * as wire from "./http2-frames.js";
import type { Counted, Sender } from "./lanes.js";

/** A unary call: frames made ahead, into which only the number of the stream is put. */
export interface GrpcRequest extends Counted {
  readonly headers: Buffer;
  /** One DATA frame, which ends the stream; or the messages of a call that sends a stream. */
  readonly data: Buffer | readonly Buffer[];
}

const { frameType } = wire;

/**
 * A gRPC client on a plain socket, for one connection and any number of calls on it: enough of HTTP/2 for servers
 * that behave, at a fraction of what a client library costs.
 */
export class Http2Connection implements Sender<GrpcRequest>, Disposable {
  readonly failed: Promise<never>;
  readonly #socket: Socket;
  readonly #calls = new Map<number, Call>();
  #fail: (error: Error) => void = () => {};
  #nextStream = 1;
  #partial: Buffer | null = null;
  #unacknowledged = 0;
  #sendWindow = wire.initialWindow;
  #streamWindow = wire.initialWindow;

  private constructor(socket: Socket) {
    this.#socket = socket.setNoDelay(true);
    this.failed = new Promise((_, reject) => {
      this.#fail = reject;
    });
    // Whoever sends something waits for it.
    this.failed.catch(() => {});
    socket.on("data", (piece) => this.#read(piece));
    socket.on("error", (error) => this.#fail(error));
    socket.on("close", () => this.#fail(new Error("the server closed the connection")));
    const settings: [number, number][] = [
      [1, 0], // No header table: the answers' headers can be read without one.
      [2, 0], // No push.
      [4, wire.largestWindow],
    ];
    socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    socket.write(wire.settingsFrame(settings));
    socket.write(wire.windowUpdateFrame(0, wire.largestWindow - wire.initialWindow));
  }

  static async open(port: number): Promise<Http2Connection> {
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    return new Http2Connection(socket);
  }

  send({ headers, data }: GrpcRequest, done: (bytes: number) => void): void {
    const stream = this.#nextStream;
    this.#nextStream += 2;
    headers.writeUInt32BE(stream, 5);
    this.#socket.write(headers);
    if (Buffer.isBuffer(data)) {
      data.writeUInt32BE(stream, 5);
      this.#socket.write(data);
      this.#sendWindow -= data.length - wire.frameHeadBytes;
      this.#calls.set(stream, { bytes: 0, done, upload: null });
    } else {
      const upload = new GrpcUpload(this.#socket, stream, data, this.#streamWindow);
      this.#calls.set(stream, { bytes: 0, done, upload });
      this.#pump();
    }
  }

  #pump(): void {
    for (const { upload } of this.#calls.values()) {
      if (upload !== null) this.#sendWindow -= upload.send(this.#sendWindow);
    }
  }

  #read(piece: Buffer): void {
    const bytes = this.#partial === null ? piece : Buffer.concat([this.#partial, piece]);
    let at = 0;
    // What the answers in this piece lead to is written in one go.
    this.#socket.cork();
    while (bytes.length - at >= wire.frameHeadBytes) {
      const end = at + wire.frameHeadBytes + bytes.readUIntBE(at, 3);
      if (end > bytes.length) break;
      const stream = bytes.readUInt32BE(at + 5);
      this.#take(
        bytes[at + 3] ?? 0,
        bytes[at + 4] ?? 0,
        stream,
        bytes.subarray(at + wire.frameHeadBytes, end),
      );
      at = end;
    }
    this.#partial = at === bytes.length ? null : bytes.subarray(at);
    this.#acknowledgeBytes();
    this.#socket.uncork();
  }

  #take(type: number, flags: number, stream: number, payload: Buffer): void {
    const acknowledged = (flags & wire.acknowledge) !== 0;
    const call = this.#calls.get(stream);
    switch (type) {
      case frameType.data:
        this.#unacknowledged += payload.length;
        if (call !== undefined) call.bytes += payload.length;
        return;
      case frameType.headers:
        if ((flags & wire.endStream) !== 0) this.#end(stream, payload);
        return;
      case frameType.settings:
        if (acknowledged) return;
        this.#takeSettings(payload);
        this.#socket.write(wire.frame(frameType.settings, wire.acknowledge, 0, Buffer.alloc(0)));
        return;
      case frameType.ping:
        if (!acknowledged) this.#socket.write(wire.frame(frameType.ping, wire.acknowledge, 0, payload));
        return;
      case frameType.windowUpdate:
        if (stream === 0) this.#sendWindow += payload.readUInt32BE();
        else call?.upload?.grow(payload.readUInt32BE());
        this.#pump();
        return;
      case frameType.resetStream:
      case frameType.goAway:
        // A server that is through with an upload may say so with NO_ERROR after its answer.
        if (type === frameType.goAway || call !== undefined) {
          this.#fail(new Error(`the server sent HTTP/2 frame ${type}`));
        }
    }
  }

  #takeSettings(payload: Buffer): void {
    const initialWindowSize = 4;
    for (let at = 0; at + 6 <= payload.length; at += 6) {
      if (payload.readUInt16BE(at) !== initialWindowSize) continue;
      const window = payload.readUInt32BE(at + 2);
      for (const { upload } of this.#calls.values()) upload?.grow(window - this.#streamWindow);
      this.#streamWindow = window;
    }
    this.#pump();
  }

  #end(stream: number, trailers: Buffer): void {
    const call = this.#calls.get(stream);
    const status = wire.grpcStatus(trailers);
    if (status !== "0") {
      this.#fail(new Error(`grpc-status ${status ?? "missing"}`));
      return;
    }
    this.#calls.delete(stream);
    call?.done(call.bytes);
  }

  #acknowledgeBytes(): void {
    if (this.#unacknowledged < 2 ** 29) return;
    this.#socket.write(wire.windowUpdateFrame(0, this.#unacknowledged));
    this.#unacknowledged = 0;
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

interface Call {
  bytes: number;
  readonly done: (bytes: number) => void;
  readonly upload: GrpcUpload | null;
}
