import type { Metadata, MethodDefinition } from "@grpc/grpc-js";
import { RegistryError } from "../core/errors.js";
import type { FaceContext } from "../core/face-context.js";
import { openGate } from "../core/gate.js";
import type { RequestOutcome } from "../core/request-observer.js";
import type { BeginTrace } from "../core/request-tracer.js";
import { apiCategory } from "./api-category.js";
import { GrpcCallContext, type ServerCall } from "./call-context.js";
import { isFault, statusOfError, statusOfOutcome } from "./errors.js";
import type { OpenCalls } from "./open-calls.js";
import { decodeMessage, type MessageCodec } from "./wire.js";

/** What calls of every kind have. */
export interface Method<Request> {
  /** `/package.Service/Method`. */
  readonly path: string;
  /** As the metrics call it; the method's name as HTTP has it unless given. */
  readonly operation?: string;
  readonly request: MessageCodec<Request>;
  /** Numbers of the request's fields that are messages themselves. */
  readonly messageFields?: readonly number[];
  /** Refuses a request that cannot be decoded, where a plain INVALID_ARGUMENT will not do. */
  readonly refuse?: (problem: string) => RegistryError;
}

/** Answers one call, whatever becomes of it, finishes it, and tells how. Must neither throw nor reject. */
export type AnswerCall = (call: GrpcCallContext) => RequestOutcome | Promise<RequestOutcome>;

/** What carries out the calls of one method: each in a context of its own, counted and traced where that is asked for. */
export function createRunner(
  { path, operation: name }: Pick<Method<unknown>, "path" | "operation">,
  face: FaceContext,
  openCalls: OpenCalls,
): (call: ServerCall, answer: AnswerCall) => void {
  const entrance = {
    gate: face.gates?.grpc ?? openGate,
    category: apiCategory(path),
    operation: face.observeOperation?.("grpc", name ?? operationName(path)),
  };
  const trace = face.traceOperation?.({ protocol: "grpc", ...nameParts(path) });
  return (serverCall, answer) => {
    const call = new GrpcCallContext(face, serverCall, openCalls, entrance);
    if (call.isTooLate) return call.finish("DEADLINE_EXCEEDED");
    if (trace !== undefined) void traced(trace, call, () => answer(call));
    else void answer(call);
  };
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
  respond: () => RequestOutcome | Promise<RequestOutcome>,
): Promise<void> {
  const trace = begin(call);
  trace.end(statusOfOutcome(await trace.run(respond)));
}

/** How a call ends that failed. */
export interface Failure {
  readonly status: { readonly code: number; readonly details: string; readonly metadata: Metadata };
  readonly outcome: RequestOutcome;
}

/** What a call is answered that `error` ended. A fault of ours is reported. */
export function failure(error: unknown, call: GrpcCallContext, face: FaceContext): Failure {
  if (isFault(error)) face.reportFault({ requestId: call.requestId, protocol: "grpc", error });
  return {
    status: { ...statusOfError(error), metadata: call.trailers() },
    outcome: error instanceof RegistryError ? error.code : "INTERNAL",
  };
}

/** Decodes all of a request. Throws what the method refuses other bytes with. */
export function decodeRequest<Request>(
  { request, messageFields, refuse }: Method<Request>,
  bytes: Uint8Array,
): Request {
  try {
    return decodeMessage(request, bytes, messageFields);
  } catch (why) {
    throw undecodable(why, refuse);
  }
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
