import type { Socket } from "node:net";
import * as wire from "./http2-frames.js";

/** The messages of one call, sent as fast as the server's flow control lets them. */
export class GrpcUpload {
  readonly #socket: Socket;
  readonly #stream: number;
  readonly #messages: readonly Buffer[];
  #window: number;
  #message = 0;
  #offset = 0;
  #ended = false;

  constructor(socket: Socket, stream: number, messages: readonly Buffer[], window: number) {
    this.#socket = socket;
    this.#stream = stream;
    this.#messages = messages;
    this.#window = window;
  }

  /** The server takes so many bytes more. */
  grow(bytes: number): void {
    this.#window += bytes;
  }

  /** Sends what it may of `connectionWindow`; the bytes sent. */
  send(connectionWindow: number): number {
    const allowed = Math.min(this.#window, connectionWindow);
    let sent = 0;
    for (let message = this.#messages[this.#message]; message !== undefined; ) {
      const bytes = Math.min(wire.maxPayloadBytes, message.length - this.#offset, allowed - sent);
      if (bytes <= 0) break;
      const payload = message.subarray(this.#offset, this.#offset + bytes);
      this.#socket.write(wire.frame(wire.frameType.data, 0, this.#stream, payload));
      sent += bytes;
      this.#offset += bytes;
      if (this.#offset < message.length) continue;
      this.#offset = 0;
      message = this.#messages[++this.#message];
    }
    this.#window -= sent;
    if (this.#message === this.#messages.length && !this.#ended) {
      this.#ended = true;
      this.#socket.write(wire.frame(wire.frameType.data, wire.endStream, this.#stream, Buffer.alloc(0)));
    }
    return sent;
  }
}
