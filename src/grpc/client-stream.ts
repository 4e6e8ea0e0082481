import type { Server, ServerReadableStream, sendUnaryData } from "@grpc/grpc-js";
import { abortError, listenForAbort } from "../core/abort.js";
import type { FaceContext } from "../core/face-context.js";
import type { RequestOutcome } from "../core/request-observer.js";
import { createRunner, decodeRequest, failure, type Method, rawDefinition } from "./call.js";
import type { GrpcCallContext } from "./call-context.js";
import type { OpenCalls } from "./open-calls.js";

type Stream = ServerReadableStream<Buffer, Buffer>;

/** A call of a stream of requests and one response. */
export interface ClientStreamMethod<Request> extends Method<Request> {
  /**
   * Answers with the encoded response, or throws. Messages are taken from the peer as they are asked for, but for 16
   * that grpc-js reads ahead; the call's abort ends them with its reason.
   */
  handle(messages: AsyncGenerator<Request, void>, call: GrpcCallContext): Promise<Buffer>;
}

/** Adds `method` to `server`, so that every way it can end is answered with a proper status. */
export function addClientStreamMethod<Request>(
  server: Server,
  method: ClientStreamMethod<Request>,
  face: FaceContext,
  openCalls: OpenCalls,
): void {
  const run = createRunner(method, face, openCalls);
  const handler = (stream: Stream, callback: sendUnaryData<Buffer>) =>
    run(stream, (context) => answer(method, face, context, stream, callback));
  const definition = rawDefinition(method.path, { requestStream: true, responseStream: false });
  server.addService({ [method.path]: definition }, { [method.path]: handler });
}

/** Answers in any case; resolves with how. */
async function answer<Request>(
  method: ClientStreamMethod<Request>,
  face: FaceContext,
  call: GrpcCallContext,
  stream: Stream,
  callback: sendUnaryData<Buffer>,
): Promise<RequestOutcome> {
  let response: Buffer;
  try {
    call.enter();
    response = await method.handle(messagesOf(method, stream, call), call);
  } catch (error) {
    const { status, outcome } = failure(error, call, face);
    call.finish(outcome);
    callback(status);
    return outcome;
  }
  call.finish("OK");
  callback(null, response, call.trailers());
  return "OK";
}

async function* messagesOf<Request>(
  method: Method<Request>,
  stream: Stream,
  call: GrpcCallContext,
): AsyncGenerator<Request, void> {
  if (call.signal.aborted) throw abortError(call.signal);
  // The peer may never send what is waited for.
  const stopListening = listenForAbort(call.signal, (signal) => stream.destroy(abortError(signal)));
  try {
    for await (const bytes of stream) yield decodeRequest(method, bytes);
  } finally {
    stopListening();
  }
}
