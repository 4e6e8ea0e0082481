import { anonymousCaller, type Caller } from "../core/caller.js";
import { bodyTooLarge } from "./errors.js";
import { type AnswerBody, type AnswerHeaders, bytesContentType, type Exchange } from "./exchange.js";
import { GrowingBuffer } from "./growing-buffer.js";
import { splitTarget } from "./request-target.js";

/**
 * A request that another application hands on. Its URL was parsed before it came here, so `..` in a path is
 * folded already, and an answer of raw bytes is gathered in memory: only our own server does both better.
 */
export class WebExchange implements Exchange {
  readonly path: string;
  readonly query: string;
  readonly isOpenToBrowsers = true;
  requestId: string | undefined = undefined;
  caller: Caller = anonymousCaller;
  extraHeaders: AnswerHeaders | undefined = undefined;
  readonly #request: Request;

  constructor(request: Request) {
    const { path, query } = splitTarget(request.url);
    this.path = path;
    this.query = query;
    this.#request = request;
  }

  get method(): string {
    return this.#request.method;
  }

  header(name: string): string | undefined {
    return this.#request.headers.get(name) ?? undefined;
  }

  get declaredLength(): number | null {
    if (this.#request.body === null) return 0;
    const declared = this.#request.headers.get("content-length");
    return declared === null ? null : Number(declared);
  }

  signal(shutdown: AbortSignal): AbortSignal {
    return AbortSignal.any([this.#request.signal, shutdown]);
  }

  async readBody(limit: number): Promise<Uint8Array> {
    const body = new GrowingBuffer();
    for await (const piece of this.bodyPieces()) {
      body.append(piece);
      if (body.length > limit) throw bodyTooLarge(this.declaredLength ?? body.length, limit);
    }
    return body.bytes;
  }

  async *bodyPieces(): AsyncGenerator<Uint8Array> {
    if (this.#request.body !== null) yield* this.#request.body;
  }

  answer(status: number, contentType: string, body: AnswerBody, headers: AnswerHeaders = {}): Response {
    const all = this.#headers(contentType, String(Buffer.byteLength(body)));
    for (const [name, value] of Object.entries(headers)) all.set(name, value);
    return new Response(body, { status, headers: all });
  }

  async stream(byteSize: bigint, pieces: AsyncIterator<Uint8Array>): Promise<Response> {
    const body = new GrowingBuffer();
    if (this.method !== "HEAD") {
      for (let next = await pieces.next(); next.done !== true; next = await pieces.next()) {
        body.append(Uint8Array.from(next.value));
      }
    }
    const headers = this.#headers(bytesContentType, String(byteSize));
    return new Response(Uint8Array.from(body.bytes), { headers });
  }

  statusOf(answer: Response): number {
    return answer.status;
  }

  breakOff(): null {
    return null;
  }

  #headers(contentType: string, length: string): Headers {
    return new Headers({
      "content-type": contentType,
      "content-length": length,
      "x-request-id": this.requestId ?? "",
      ...this.extraHeaders,
    });
  }
}
