import type { CallSignal } from "../core/abort.js";
import type { Caller } from "../core/caller.js";
import type { Clock } from "../core/clock.js";

/**
 * One request and its answer, whatever carries them: a socket of our own server, or the Request and Response
 * of an application this one is mounted in.
 */
export interface Exchange {
  readonly method: string;
  /** The path as the client wrote it: nothing decoded, nothing folded, no query. */
  readonly path: string;
  /** What follows the `?` of the target, undecoded. */
  readonly query: string;
  /** Names the request in the log and in the answer; undefined until the application gave one. */
  requestId: string | undefined;
  /** Whether it came by a way that a browser can take. */
  readonly isOpenToBrowsers: boolean;
  /** Who calls, once that is known. */
  caller: Caller;
  /** What its answer has besides its own headers, whatever it turns out to be. */
  extraHeaders: AnswerHeaders | undefined;
  /** A header of the request by its name in lower case, `host` as the client sent it. */
  header(name: string): string | undefined;
  /** Bytes of the body as the client declared them, null if it did not. */
  readonly declaredLength: number | null;
  /** Aborted, with a RegistryError as the reason, when the client is gone or `shutdown` is aborted. */
  signal(shutdown: AbortSignal): CallSignal;
  /**
   * The whole body. Throws INVALID_ARGUMENT if it has more than `limit` bytes, once the rest was read or
   * given up; CANCELLED if the client went away.
   */
  readBody(limit: number): Promise<Uint8Array>;
  /** The body piece by piece, as fast as the caller takes them. Throws CANCELLED if the client went away. */
  bodyPieces(): AsyncIterable<Uint8Array>;
  /** Answers; what is unread of the body is thrown away. */
  answer(status: number, contentType: string, body: AnswerBody, headers?: AnswerHeaders): Response;
  /**
   * Answers with `byteSize` bytes, piece by piece. A piece may be changed once the next is asked for. An
   * error before the first piece can still be answered; one after it breaks the connection.
   */
  stream(byteSize: bigint, pieces: AsyncIterator<Uint8Array>, shutdown: AbortSignal): Promise<Response>;
  /**
   * Answers with text that comes bit by bit, until `pieces` ends. The next piece is asked for when the client's side
   * has the one before, so one who does not read has nothing kept for it. An error before the first piece can still
   * be answered; one after it breaks the connection.
   */
  streamText(pieces: AsyncIterator<string>, options: TextStreamOptions): Promise<Response>;
  /** The status of an answer that this made. */
  statusOf(answer: Response): number;
  /** Breaks an answer that has begun, so that nobody takes it for whole. Null if none has begun. */
  breakOff(): Response | null;
}

/** How text is answered bit by bit. */
export interface TextStreamOptions {
  readonly contentType: string;
  readonly headers: AnswerHeaders;
  readonly clock: Clock;
  /** Where the socket is ours: how long a client may take nothing before its connection is cut, in milliseconds. */
  readonly patienceMs: number;
  /** The same once the service stops. */
  readonly exitPatienceMs: number;
  readonly shutdown: AbortSignal;
}

/** Text, or bytes that are ready to send. */
export type AnswerBody = string | Uint8Array<ArrayBuffer>;

/** Headers of an answer beyond those that every answer has; names in lower case. */
export type AnswerHeaders = Readonly<Record<string, string>>;

/** What an answer of raw bytes is called. */
export const bytesContentType = "application/octet-stream";
