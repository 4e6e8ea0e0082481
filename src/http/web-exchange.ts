import { anonymousCaller, type Caller } from "../core/caller.js";
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
  /** Aborted when nobody reads the answer any more. */
  readonly #abandoned = new AbortController();

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
    return AbortSignal.any([this.#request.signal, this.#abandoned.signal, shutdown]);
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
    const length = String(Buffer.byteLength(body));
    const all = this.#headers(contentType, { "content-length": length, ...headers });
    return new Response(body, { status, headers: all });
  }

  async stream(byteSize: bigint, pieces: AsyncIterator<Uint8Array>): Promise<Response> {
    const body = new GrowingBuffer();
    if (this.method !== "HEAD") {
      for (let next = await pieces.next(); next.done !== true; next = await pieces.next()) {
        body.append(Uint8Array.from(next.value));
      }
    }
    const headers = this.#headers(bytesContentType, { "content-length": String(byteSize) });
    return new Response(Uint8Array.from(body.bytes), { headers });
  }

  async streamText(pieces: AsyncIterator<string>, options: TextStreamOptions): Promise<Response> {
    let next: IteratorResult<string> | undefined = await pieces.next();
    const headers = this.#headers(options.contentType, options.headers);
    if (this.method === "HEAD") {
      await pieces.return?.();
      return new Response(null, { headers });
    }
    const encoder = new TextEncoder();
    const body = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          const { done, value } = next ?? (await pieces.next());
          next = undefined;
          if (done === true) controller.close();
          else controller.enqueue(encoder.encode(value));
        },
        cancel: async () => {
          this.#abandoned.abort(clientGone());
          await pieces.return?.();
        },
      },
      { highWaterMark: 0 },
    );
    return new Response(body, { headers });
  }

  statusOf(answer: Response): number {
    return answer.status;
  }

  breakOff(): null {
    return null;
  }

  #headers(contentType: string, headers: AnswerHeaders): Headers {
    return new Headers({
      "content-type": contentType,
      "x-request-id": this.requestId ?? "",
      ...this.extraHeaders,
      ...headers,
    });
  }
}
