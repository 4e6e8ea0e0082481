import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Counted, Sender } from "./lanes.js";

export interface HttpRequest extends Counted {
  readonly bytes: Buffer;
}

const endOfHead = "\r\n\r\n";

/**
 * A keep-alive HTTP/1.1 connection with one request on it at a time, over a plain socket: Node's own client costs
 * more than the servers that are measured. It wants 200 and a Content-Length.
 */
export class HttpConnection implements Sender<HttpRequest>, Disposable {
  readonly failed: Promise<never>;
  readonly #socket: Socket;
  #fail: (error: Error) => void = () => {};
  #done: ((bytes: number) => void) | null = null;
  #partialHead: Buffer | null = null;
  #bodyLength = 0;
  #bodyLeft = 0;
  /** Null while all is well. */
  #refusal: string | null = null;

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
  }

  static async open(port: number): Promise<HttpConnection> {
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    return new HttpConnection(socket);
  }

  send({ bytes }: HttpRequest, done: (bytes: number) => void): void {
    this.#done = done;
    this.#socket.write(bytes);
  }

  #read(piece: Buffer): void {
    if (this.#bodyLeft > 0) {
      this.#readBody(piece);
      return;
    }
    const bytes = this.#partialHead === null ? piece : Buffer.concat([this.#partialHead, piece]);
    const end = bytes.indexOf(endOfHead, 0, "latin1");
    this.#partialHead = end < 0 ? bytes : null;
    if (end >= 0 && this.#readHead(bytes.toString("latin1", 0, end))) {
      this.#readBody(bytes.subarray(end + endOfHead.length));
    }
  }

  #readHead(head: string): boolean {
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (length === undefined) {
      this.#fail(new Error(`an answer without Content-Length: ${head}`));
      return false;
    }
    this.#refusal = head.startsWith("HTTP/1.1 200 ") ? null : `${head.slice(0, head.indexOf("\r\n"))} `;
    this.#bodyLength = this.#bodyLeft = Number(length);
    return true;
  }

  #readBody(piece: Buffer): void {
    this.#bodyLeft -= piece.length;
    if (this.#refusal !== null) this.#refusal += piece.toString();
    if (this.#bodyLeft > 0) return;
    if (this.#bodyLeft < 0) this.#fail(new Error("more bytes than the answer has"));
    else if (this.#refusal !== null) this.#fail(new Error(this.#refusal));
    else this.#done?.(this.#bodyLength);
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

/** The bytes of one request. */
export function encodeHttp(method: string, path: string, body?: string | Buffer): Buffer {
  const bytes = Buffer.from(body ?? "");
  const type = bytes.length === 0 ? "" : "Content-Type: application/json\r\n";
  const length = method === "GET" ? "" : `Content-Length: ${bytes.length}\r\n`;
  const head = `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${type}${length}\r\n`;
  return Buffer.concat([Buffer.from(head, "latin1"), bytes]);
}
