import type { MethodDefinition, Server, ServerUnaryCall, sendUnaryData } from "@grpc/grpc-js";
import { RegistryError } from "../core/errors.js";
import type { FaceContext } from "../core/face-context.js";
import { openGate } from "../core/gate.js";
import type { OperationObserver, RequestOutcome } from "../core/request-observer.js";
import type { BeginTrace } from "../core/request-tracer.js";
import { apiCategory } from "./api-category.js";
import { GrpcCallContext } from "./call-context.js";
import { isFault, statusOfError, statusOfOutcome } from "./errors.js";
import type { OpenCalls } from "./open-calls.js";
import { decodeMessage, type MessageCodec } from "./wire.js";

/** A call of one request and one response. */
export interface UnaryMethod<Request> {
  /** `/package.Service/Method`. */
  readonly path: string;
  readonly request: MessageCodec<Request>;
  /** Refuses a request that cannot be decoded, where a plain INVALID_ARGUMENT will not do. */
  readonly refuse?: (problem: string) => RegistryError;
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
  const entrance = { gate: face.gates?.grpc ?? openGate, category: apiCategory(method.path) };
  const operation = face.observeOperation?.("grpc", operationName(method.path));
  const trace = face.traceOperation?.({ protocol: "grpc", ...nameParts(method.path) });
  const handler = (call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>) => {
    const context = new GrpcCallContext(face, call, openCalls, entrance);
    const respond = () =>
      operation === undefined
        ? answer(method, face, context, call.request, callback)
        : answerObserved(operation, method, face, context, call.request, callback);
    if (trace === undefined) void respond();
    else void traced(trace, context, respond);
  };
  const definition = rawDefinition(method.path, { requestStream: false, responseStream: false });
  server.addService({ [method.path]: definition }, { [method.path]: handler });
}

/** The method's name as HTTP calls the same operation. */
function operationName(path: string): string {
  const { method } = nameParts(path);
  return method.charAt(0).toLowerCase() + method.slice(1);
}

function nameParts(path: string): { service: string; method: string } {
  const end = path.lastIndexOf("/");
  return { service: path.slice(1, end), method: path.slice(end + 1) };
}

async function traced(
  begin: BeginTrace,
  call: GrpcCallContext,
  respond: () => Promise<RequestOutcome>,
): Promise<void> {
  const trace = begin(call);
  trace.end(statusOfOutcome(await trace.run(respond)));
}

async function answerObserved<Request>(
  operation: OperationObserver,
  method: UnaryMethod<Request>,
  face: FaceContext,
  call: GrpcCallContext,
  bytes: Buffer,
  callback: sendUnaryData<Buffer>,
): Promise<RequestOutcome> {
  const startedAt = operation.begin();
  const outcome = await answer(method, face, call, bytes, callback);
  operation.end(startedAt, outcome, call.requestId);
  return outcome;
}

/** Answers in any case; resolves with how. */
async function answer<Request>(
  method: UnaryMethod<Request>,
  face: FaceContext,
  call: GrpcCallContext,
  bytes: Buffer,
  callback: sendUnaryData<Buffer>,
): Promise<RequestOutcome> {
  let request: Request | undefined;
  let response: Buffer;
  try {
    call.enter();
    request = decodeMessage(method.request, bytes);
    response = await method.handle(request, call);
  } catch (thrown) {
    const decoded = request !== undefined || thrown instanceof RegistryError;
    const error = decoded ? thrown : undecodable(thrown, method.refuse);
    callback(statusOfError(error), null, call.trailers());
    if (isFault(error)) face.reportFault({ requestId: call.requestId, protocol: "grpc", error });
    return error instanceof RegistryError ? error.code : "INTERNAL";
  } finally {
    call.finish();
  }
  callback(null, response, call.trailers());
  return "OK";
}

/** The refusal of a request whose bytes are no message; `why` is the decoder's error. */
export function undecodable(why: unknown, refuse = invalidArgument): RegistryError {
  const problem = why instanceof TypeError ? "a string is not valid UTF-8" : "the bytes are no such message";
  return refuse(`the request cannot be decoded: ${problem}`);
}

function invalidArgument(problem: string): RegistryError {
  return new RegistryError("INVALID_ARGUMENT", problem);
}

/** A method whose messages grpc-js passes on as they are, so that decoding can fail inside our own wrapper. */
export function rawDefinition(
  path: string,
  streams: { requestStream: boolean; responseStream: boolean },
): MethodDefinition<Buffer, Buffer> {
  return {
    path,
    ...streams,
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
  };
}

function asIs(bytes: Buffer): Buffer {
  return bytes;
}
