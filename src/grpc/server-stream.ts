import type { Server, ServerWritableStream } from "@grpc/grpc-js";
import { abortError, listenForAbort } from "../core/abort.js";
import type { FaceContext } from "../core/face-context.js";
import type { RequestOutcome } from "../core/request-observer.js";
import { createRunner, decodeRequest, failure, type Method, rawDefinition } from "./call.js";
import type { GrpcCallContext } from "./call-context.js";
import type { OpenCalls } from "./open-calls.js";

type Stream = ServerWritableStream<Buffer, Buffer>;

/** A call of one request that is answered with a stream. */
export interface ServerStreamMethod<Request> extends Method<Request> {
  /**
   * The encoded messages; the next is asked for once the peer has taken the one before. Throws how the stream ends
   * unless that is well, and when the call's signal is aborted.
   */
  handle(request: Request, call: GrpcCallContext): AsyncIterable<Buffer>;
}

/** Adds `method` to `server`, so that every way it can end is answered with a proper status. */
export function addServerStreamMethod<Request>(
  server: Server,
  method: ServerStreamMethod<Request>,
  face: FaceContext,
  openCalls: OpenCalls,
): void {
  const run = createRunner(method, face, openCalls);
  const handler = (stream: Stream) => run(stream, (context) => answer(method, face, context, stream));
  const definition = rawDefinition(method.path, { requestStream: false, responseStream: true });
  server.addService({ [method.path]: definition }, { [method.path]: handler });
}

/** Answers in any case; resolves with how. */
async function answer<Request>(
  method: ServerStreamMethod<Request>,
  face: FaceContext,
  call: GrpcCallContext,
  stream: Stream,
): Promise<RequestOutcome> {
  try {
    call.enter();
    const messages = method.handle(decodeRequest(method, stream.request), call);
    for await (const message of messages) await send(stream, message, call);
  } catch (error) {
    const { status, outcome } = failure(error, call, face);
    call.finish(outcome);
    stream.emit("error", status);
    return outcome;
  }
  call.finish("OK");
  stream.end(call.trailers());
  return "OK";
}

/** Resolves once the peer has taken the message; rejects if the call is aborted first. */
function send(stream: Stream, message: Buffer, call: GrpcCallContext): Promise<void> {
  if (call.signal.aborted) return Promise.reject(abortError(call.signal));
  return new Promise((resolve, reject) => {
    const stopListening = listenForAbort(call.signal, (signal) => reject(abortError(signal)));
    stream.write(message, (error: Error | null | undefined) => {
      stopListening();
      if (error) reject(error);
      else resolve();
    });
  });
}
