import { BinaryReader, BinaryWriter } from "@bufbuild/protobuf/wire";
import { assertWellFormed } from "./well-formed.js";

/** What ts-proto generates for a message. */
export interface MessageCodec<Message> {
  encode(message: Message, writer?: BinaryWriter): BinaryWriter;
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

/** What a writer that has written more is not kept for. */
const maxKeptBytes = 64 * 1024;

// A writer's buffer costs a small message more than the rest of its encoding, and finishing it makes it new.
let writer = new BinaryWriter();

export function encodeMessage<Message>(codec: MessageCodec<Message>, message: Message): Buffer<ArrayBuffer> {
  let bytes: Uint8Array<ArrayBuffer> | undefined;
  try {
    bytes = codec.encode(message, writer).finish();
  } finally {
    // One that was left in the middle still has what was written.
    if (bytes === undefined || bytes.length > maxKeptBytes) writer = new BinaryWriter();
  }
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
