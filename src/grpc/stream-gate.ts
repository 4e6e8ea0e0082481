import type { ServerDuplexStream, ServerWritableStream } from "@grpc/grpc-js";
import type { HeaderSource } from "../core/restrictions.js";
import { statusOfError } from "./errors.js";
import { metadataHeader } from "./metadata-header.js";

type Stream = ServerWritableStream<Buffer, Buffer> | ServerDuplexStream<Buffer, Buffer>;

/** Whether a stream may begin. One that `pass` throws a refusal for is ended with it. */
export function mayBegin(stream: Stream, pass: (call: HeaderSource) => void): boolean {
  try {
    pass({ header: (name) => metadataHeader(stream.metadata, name) });
    return true;
  } catch (refusal) {
    stream.emit("error", statusOfError(refusal));
    return false;
  }
}
