import { BinaryReader, type BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

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

/**
 * Throws unless `bytes` are fields from the first to the last, and those of `messageFields` too. The generated
 * decoders stop without a word at tag 0 and at a stray end of a group; what follows would be lost, and an unregister
 * whose name is lost unregisters everything, or, after a message in a message, be taken for the outer one's.
 */
export function assertWellFormed(bytes: Uint8Array, messageFields: readonly number[] = []): void {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (wireType === WireType.LengthDelimited && messageFields.includes(field)) {
      assertWellFormed(reader.bytes());
    } else {
      reader.skip(wireType, field);
    }
  }
}
