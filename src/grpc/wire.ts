import { BinaryReader, type BinaryWriter } from "@bufbuild/protobuf/wire";
import { assertWellFormed } from "./well-formed.js";

/** What ts-proto generates for a message. */
export interface MessageCodec<Message> {
  encode(message: Message): BinaryWriter;
  decode(input: BinaryReader): Message;
}

// Without `fatal`, distinct byte strings would become the same name with U+FFFD in it; without `ignoreBOM`, a
// leading U+FEFF would vanish from a name.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decodeUtf8(bytes: Uint8Array): string {
  return utf8.decode(bytes);
}

/**
 * Decodes all of `bytes`. Throws on anything that is not a whole message with well-formed strings. `messageFields`
 * are the numbers of its fields that are messages themselves.
 */
export function decodeMessage<Message>(
  codec: MessageCodec<Message>,
  bytes: Uint8Array,
  messageFields?: readonly number[],
): Message {
  assertWellFormed(bytes, messageFields);
  return codec.decode(new BinaryReader(bytes, decodeUtf8));
}

/** Encodes without copying. */
export function encodeMessage<Message>(codec: MessageCodec<Message>, message: Message): Buffer<ArrayBuffer> {
  const bytes = codec.encode(message).finish();
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
