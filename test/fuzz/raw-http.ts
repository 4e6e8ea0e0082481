import { once } from "node:events";
import { connect, type Socket } from "node:net";

export interface RawAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** All that an answer of the service may have, so that nothing of a request can have become a header. */
const knownHeaders = new Set([
  "access-control-allow-origin",
  "access-control-expose-headers",
  "allow",
  "cache-control",
  "connection",
  "content-length",
  "content-type",
  "date",
  "keep-alive",
  "transfer-encoding",
  "www-authenticate",
  "x-accel-buffering",
  "x-error-code",
  "x-request-id",
]);

/** Reads answers off a connection. Throws at the first byte that no answer of the service has. */
class AnswerReader {
  #bytes = "";

  /** What came and is no whole answer yet. */
  get rest(): string {
    return this.#bytes;
  }

  push(piece: Buffer): void {
    this.#bytes += piece.toString("latin1");
  }

  /** The next answer, if all of it is there; one to HEAD has no body, unless what it answers was no request yet. */
  next(method = "GET"): RawAnswer | null {
    const headEnd = this.#bytes.indexOf("\r\n\r\n");
    if (headEnd === -1) return null;
    const [statusLine = "", ...lines] = this.#bytes.slice(0, headEnd).split("\r\n");
    const status = Number(/^HTTP\/1\.1 (\d{3}) [\x20-\x7e]*$/.exec(statusLine)?.[1] ?? fail(statusLine));
    const headers = new Map(lines.map(headerIn));
    if (headers.size !== lines.length) fail(lines.join("\n"));
    if (status === 100) {
      this.#bytes = this.#bytes.slice(headEnd + 4);
      return this.next(method);
    }
    const length = Number(headers.get("content-length") ?? fail(this.#bytes.slice(0, headEnd)));
    const end = headEnd + 4 + (method === "HEAD" && headers.has("date") ? 0 : length);
    if (this.#bytes.length < end) return null;
    const body = Buffer.from(this.#bytes.slice(headEnd + 4, end), "latin1").toString();
    this.#bytes = this.#bytes.slice(end);
    return { status, headers, body };
  }
}

function headerIn(line: string): [string, string] {
  const [, name = fail(line), value = ""] = /^([A-Za-z-]+): ([\x20-\x7e]*)$/.exec(line) ?? [];
  return knownHeaders.has(name.toLowerCase()) ? [name.toLowerCase(), value] : fail(line);
}

function fail(text: string): never {
  throw new Error(`no answer of the service has this: ${JSON.stringify(text.slice(0, 300))}`);
}

/** One connection after the other, each used for as long as the service lets it: one request at a time. */
export class HttpLine implements Disposable {
  readonly #port: number;
  #socket: Socket | undefined;
  #reader = new AnswerReader();
  #wake: () => void = () => {};

  constructor(port: number) {
    this.#port = port;
  }

  /** Sends a request that is whole and waits for its answer. Rejects if none comes. */
  async ask(request: Uint8Array | string, method?: string): Promise<RawAnswer> {
    try {
      return await this.#ask(request, method);
    } catch (error) {
      // What comes on it from now on answers nothing.
      this[Symbol.dispose]();
      throw error;
    }
  }

  async #ask(request: Uint8Array | string, method?: string): Promise<RawAnswer> {
    const socket = await this.#connected();
    socket.write(request);
    for (;;) {
      const answer = this.#reader.next(method);
      if (answer !== null) {
        if (this.#reader.rest !== "") fail(this.#reader.rest);
        if (answer.headers.get("connection") !== "keep-alive") this[Symbol.dispose]();
        return answer;
      }
      if (socket.closed) fail(`${this.#reader.rest} and the end`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async #connected(): Promise<Socket> {
    if (this.#socket?.writable === true && this.#socket.readable) return this.#socket;
    const socket = connect(this.#port, "127.0.0.1").setNoDelay(true);
    this.#socket = socket;
    const reader = new AnswerReader();
    this.#reader = reader;
    socket.on("data", (piece) => {
      reader.push(piece);
      this.#wake();
    });
    socket.on("error", () => {});
    socket.on("close", () => this.#wake());
    await once(socket, "connect");
    return socket;
  }

  [Symbol.dispose](): void {
    this.#socket?.destroy();
    this.#socket = undefined;
  }
}

/**
 * Sends bytes on a connection of their own, and that there will be no more; gives what came back before the service
 * closed it.
 */
export async function exchangeBytes(port: number, bytes: Uint8Array | string): Promise<Buffer> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true }).setNoDelay(true);
  const pieces: Buffer[] = [];
  socket.on("data", (piece: Buffer) => pieces.push(piece));
  // Reset by the service: it had what it needed.
  socket.on("error", () => {});
  socket.on("end", () => socket.destroy());
  socket.end(bytes);
  await once(socket, "close");
  return Buffer.concat(pieces);
}

/** Every answer in all that came back on a connection, of which the first is to `method`. */
export function answersIn(bytes: Buffer, method: string): RawAnswer[] {
  const reader = new AnswerReader();
  reader.push(bytes);
  const answers: RawAnswer[] = [];
  for (let next = reader.next(method); next !== null; next = reader.next()) answers.push(next);
  return reader.rest === "" ? answers : fail(reader.rest);
}

/** A request line, header lines and a body with its length. */
export function requestText(
  method: string,
  target: string,
  { headers = [], body }: { headers?: readonly string[]; body?: Uint8Array | string } = {},
): Buffer {
  const length = body === undefined ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
  const head = [`${method} ${target} HTTP/1.1`, "Host: localhost", ...headers, ...length, "", ""].join(
    "\r\n",
  );
  return Buffer.concat([Buffer.from(head, "latin1"), Buffer.from(body ?? "")]);
}
