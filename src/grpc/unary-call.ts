import type { Server, ServerUnaryCall, sendUnaryData } from "@grpc/grpc-js";
import type { FaceContext } from "../core/face-context.js";
import type { RequestOutcome } from "../core/request-observer.js";
import { createRunner, decodeRequest, failure, type Method, rawDefinition } from "./call.js";
import type { GrpcCallContext } from "./call-context.js";
import type { OpenCalls } from "./open-calls.js";
import { largeAnswerBytes, type UnreadAnswers } from "./unread-answers.js";

/** A call of one request and one response. */
export interface UnaryMethod<Request> extends Method<Request> {
  /** Answers with the encoded response, or throws. */
  handle(request: Request, call: GrpcCallContext): Buffer | Promise<Buffer>;
}

/** Adds `method` to `server`, so that every way it can end is answered with a proper status. */
export function addUnaryMethod<Request>(
  server: Server,
  method: UnaryMethod<Request>,
  face: FaceContext,
  openCalls: OpenCalls,
): void {
  const run = createRunner(method, face, openCalls);
  const handler = (call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>) =>
    run(call, (context) => answer(method, face, context, openCalls.unread, call, callback));
  const definition = rawDefinition(method.path, { requestStream: false, responseStream: false });
  server.addService({ [method.path]: definition }, { [method.path]: handler });
}

/** Answers in any case, and tells how: at once what needs no waiting, since a promise costs more than most of this. */
function answer<Request>(
  method: UnaryMethod<Request>,
  face: FaceContext,
  call: GrpcCallContext,
  unread: UnreadAnswers,
  serverCall: ServerUnaryCall<Buffer, Buffer>,
  callback: sendUnaryData<Buffer>,
): RequestOutcome | Promise<RequestOutcome> {
  const succeed = (response: Buffer): RequestOutcome => {
    if (response.byteLength >= largeAnswerBytes && !serverCall.cancelled) {
      try {
        // Told of a call in the end however it went, here once the peer has taken its answer.
        serverCall.on("cancelled", unread.add(serverCall.getPeer(), response));
      } catch (error) {
        return fail(error);
      }
    }
    call.finish("OK");
    callback(null, response, call.trailers());
    return "OK";
  };
  const fail = (error: unknown): RequestOutcome => {
    const { status, outcome } = failure(error, call, face);
    call.finish(outcome);
    callback(status);
    return outcome;
  };
  let response: Buffer | Promise<Buffer>;
  try {
    call.enter();
    response = method.handle(decodeRequest(method, serverCall.request), call);
  } catch (error) {
    return fail(error);
  }
  return response instanceof Promise ? response.then(succeed, fail) : succeed(response);
}
