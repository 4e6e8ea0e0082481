import type { ServerDuplexStream, ServerWritableStream } from "@grpc/grpc-js";
import type { Gate } from "../core/gate.js";
import type { HeaderSource } from "../core/restrictions.js";
import { statusOfError } from "./errors.js";
import { metadataHeader } from "./metadata-header.js";

type Stream = ServerWritableStream<Buffer, Buffer> | ServerDuplexStream<Buffer, Buffer>;

/** Whether a stream may begin. One that `pass` throws a refusal for is ended with it. */
export function mayBegin(
  stream: Stream,
  gate: Gate | undefined,
  pass: (gate: Gate, call: HeaderSource) => void,
): boolean {
  if (gate === undefined) return true;
  try {
    pass(gate, { header: (name) => metadataHeader(stream.metadata, name) });
    return true;
  } catch (refusal) {
    stream.emit("error", statusOfError(refusal));
    return false;
  }
}
