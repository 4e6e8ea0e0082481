import { IncomingMessage, type ServerResponse } from "node:http";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { type CallSignal, listenForAbort } from "../core/abort.js";
import { anonymousCaller, type Caller } from "../core/caller.js";
import type { BodyDrain } from "./body-drain.js";
import type { HttpConnection } from "./connection.js";
import { bodyTooLarge, clientGone } from "./errors.js";
import {
  type AnswerBody,
  type AnswerHeaders,
  bytesContentType,
  type Exchange,
  type TextStreamOptions,
} from "./exchange.js";
import { GrowingBuffer } from "./growing-buffer.js";
import { splitTarget } from "./request-target.js";
import { TextWriter } from "./text-writer.js";

/** A request that remembers its target and Host as they came: both are replaced before the adapter sees them. */
export class RequestMessage extends IncomingMessage {
  target = "";
  host: string | undefined = undefined;
}

/**
 * A request on a socket of our own server. It answers on the socket itself: a web Response would cost as much
 * again as the whole of a small request, and has no way to hold back a slow reader.
 */
export class NodeExchange implements Exchange {
  readonly path: string;
  readonly query: string;
  requestId: string | undefined = undefined;
  caller: Caller = anonymousCaller;
  extraHeaders: AnswerHeaders | undefined = undefined;
  readonly #incoming: RequestMessage;
  readonly #outgoing: ServerResponse;
  readonly #connection: HttpConnection;
  readonly #drain: BodyDrain;
  #drainGivenUp = false;

  constructor(
    incoming: RequestMessage,
    outgoing: ServerResponse,
    connection: HttpConnection,
    drain: BodyDrain,
  ) {
    const { path, query } = splitTarget(incoming.target);
    this.path = path;
    this.query = query;
    this.#incoming = incoming;
    this.#outgoing = outgoing;
    this.#connection = connection;
    this.#drain = drain;
  }

  get method(): string {
    return this.#incoming.method ?? "GET";
  }

  get isOpenToBrowsers(): boolean {
    return this.#connection.by === "tcp";
  }

  header(name: string): string | undefined {
    if (name === "host") return this.#incoming.host;
    // Of some, `authorization` among them, `headers` has only the first. The distinct ones cost a small request too much
    // to be made for headers that it does not have.
    const { headers } = this.#incoming;
    return headers[name] === undefined ? undefined : this.#incoming.headersDistinct[name]?.join(", ");
  }

  get declaredLength(): number | null {
    const { headers } = this.#incoming;
    if (headers["transfer-encoding"] !== undefined) return null;
    return Number(headers["content-length"] ?? 0);
  }

  signal(shutdown: AbortSignal): CallSignal {
    return this.#connection.signal(shutdown);
  }

  async readBody(limit: number): Promise<Uint8Array> {
    const declared = this.declaredLength;
    if (declared !== null && declared > limit) {
      await this.#drainRest();
      throw bodyTooLarge(declared, limit);
    }
    const body = await this.#collect(limit);
    if (body.length <= limit) return body.bytes;
    throw bodyTooLarge(body.length + (await this.#drainRest()), limit);
  }

  /** The body, or as much of it as shows that it is over the limit. */
  #collect(limit: number): Promise<GrowingBuffer> {
    const incoming = this.#incoming;
    return new Promise((resolve, reject) => {
      const body = new GrowingBuffer();
      const settle = () => {
        incoming.off("data", onData);
        incoming.off("end", onEnd);
        incoming.off("close", onClose);
      };
      const onData = (piece: Buffer) => {
        body.append(piece);
        if (body.length > limit) onEnd();
      };
      const onEnd = () => {
        settle();
        resolve(body);
      };
      const onClose = () => {
        settle();
        reject(clientGone());
      };
      incoming.on("data", onData);
      incoming.on("end", onEnd);
      incoming.on("close", onClose);
      if (incoming.destroyed) onClose();
    });
  }

  async *bodyPieces(): AsyncGenerator<Uint8Array> {
    try {
      for await (const piece of this.#incoming.iterator({ destroyOnReturn: false })) yield piece;
    } catch {
      // A request stream breaks for one reason only; what the caller throws does not come through here.
      throw clientGone();
    }
  }

  async #drainRest(): Promise<number> {
    const { bytes, complete } = await this.#drain.drain(this.#incoming, this.declaredLength);
    this.#drainGivenUp = !complete;
    return bytes;
  }

  answer(status: number, contentType: string, body: AnswerBody, headers?: AnswerHeaders): Response {
    const bytes = Buffer.byteLength(body);
    const own = this.#headers(contentType, String(bytes));
    this.#discardBody();
    this.#outgoing.writeHead(status, headers === undefined ? own : own.concat(...Object.entries(headers)));
    if (bytes > 0) this.#writeAtOnce(body, bytes === body.length ? "latin1" : "utf8");
    this.#outgoing.end();
    return RESPONSE_ALREADY_SENT;
  }

  /** Headers and body in one piece: `end` would make two of a body, and the kernel takes half as long again for two. */
  #writeAtOnce(body: AnswerBody, encoding: BufferEncoding): void {
    const { socket } = this.#outgoing;
    socket?.cork();
    this.#outgoing.write(body, encoding);
    socket?.uncork();
  }

  async stream(
    byteSize: bigint,
    pieces: AsyncIterator<Uint8Array>,
    shutdown: AbortSignal,
  ): Promise<Response> {
    const withBody = this.method !== "HEAD";
    let next = withBody ? await pieces.next() : null;
    this.#discardBody();
    this.#outgoing.writeHead(200, this.#headers(bytesContentType, String(byteSize)));
    while (next !== null && next.done !== true) {
      await this.#write(next.value, this.signal(shutdown));
      next = await pieces.next();
    }
    this.#outgoing.end();
    return RESPONSE_ALREADY_SENT;
  }

  async streamText(pieces: AsyncIterator<string>, options: TextStreamOptions): Promise<Response> {
    let next = await pieces.next();
    this.#discardBody();
    const own = this.#headers(options.contentType, null);
    this.#outgoing.writeHead(200, own.concat(...Object.entries(options.headers)));
    const writer = new TextWriter(this.#outgoing, this.signal(options.shutdown), options);
    try {
      while (this.method !== "HEAD" && next.done !== true) {
        await writer.write(next.value);
        next = await pieces.next();
      }
    } finally {
      await pieces.return?.();
    }
    await writer.end();
    return RESPONSE_ALREADY_SENT;
  }

  /** Resolves when the kernel has the piece, which is what holds a fast driver back for a slow reader. */
  #write(piece: Uint8Array, signal: CallSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const stopListening = listenForAbort(signal, () => reject(signal.reason));
      this.#outgoing.write(piece, (error) => {
        stopListening();
        if (error) reject(clientGone());
        else resolve();
      });
    });
  }

  statusOf(): number {
    return this.#outgoing.statusCode;
  }

  breakOff(): Response | null {
    if (!this.#outgoing.headersSent) return null;
    this.#outgoing.destroy();
    return RESPONSE_ALREADY_SENT;
  }

  /** Without a length the body goes out in chunks. */
  #headers(contentType: string, length: string | null): string[] {
    const id = this.requestId ?? "";
    const own =
      length === null
        ? ["content-type", contentType, "x-request-id", id]
        : ["content-type", contentType, "content-length", length, "x-request-id", id];
    return this.extraHeaders === undefined ? own : own.concat(...Object.entries(this.extraHeaders));
  }

  /** Before an answer: sees to it that the next request on the connection can be read, or closes it after. */
  #discardBody(): void {
    if (this.#drainGivenUp) {
      this.#outgoing.shouldKeepAlive = false;
      return;
    }
    const declared = this.declaredLength;
    if (declared === 0 || this.#incoming.readableEnded) return;
    if (!this.#drain.hasRoomFor(declared)) {
      this.#outgoing.shouldKeepAlive = false;
      return;
    }
    const { socket } = this.#incoming;
    void this.#drain.drain(this.#incoming, declared).then(({ complete }) => {
      if (!complete) socket.destroy();
    });
  }
}
