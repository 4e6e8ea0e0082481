import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import * as wire from "../gen/cudashm/v1/registry.js";
import type { MessageCodec } from "../wire.js";

const responseDataField = 1;
const requestDataField = 2;

/** A ReadContentsResponse with room for its data, which are read into it. */
export interface ReadMessage {
  /** The whole of it, encoded. */
  readonly message: Buffer;
  /** Where its data are. */
  readonly data: Uint8Array;
}

/** The generated encoder would copy each message's data three times. */
export function createReadMessage(dataBytes: number): ReadMessage {
  const head = new BinaryWriter().tag(responseDataField, WireType.LengthDelimited).uint32(dataBytes).finish();
  const message = Buffer.alloc(head.length + dataBytes);
  message.set(head);
  return { message, data: message.subarray(head.length) };
}

/** As the generated one, but that it does not copy the data of a message which has nothing else. */
export const writeMessage: MessageCodec<wire.WriteContentsRequest> = {
  encode: wire.WriteContentsRequest.encode,

  decode(reader) {
    if (reader.len > 0) {
      const [field, wireType] = reader.tag();
      if (field === requestDataField && wireType === WireType.LengthDelimited) {
        const { buffer, byteOffset, byteLength } = reader.bytes();
        const value = Buffer.from(buffer, byteOffset, byteLength);
        if (reader.pos === reader.len) return { part: { $case: "data", value } };
      }
      reader.pos = 0;
    }
    return wire.WriteContentsRequest.decode(reader);
  },
};
