import { BinaryReader, BinaryWriter } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { expect, test } from "vitest";
import { ReadContentsResponse, WriteContentsRequest } from "../../src/grpc/gen/cudashm/v1/registry.js";
import { createReadMessage, writeMessage } from "../../src/grpc/registry/content-messages.js";

test.each([1, 127, 128, 16_383, 16_384, 262_144])("a read message has room for %i bytes of data", (bytes) => {
  const { message, data } = createReadMessage(bytes);
  data.fill(7);
  expect(data.byteLength).toBe(bytes);
  const { data: read } = ReadContentsResponse.decode(message);
  expect(read.equals(Buffer.alloc(bytes, 7))).toBe(true);
  expect(message.equals(ReadContentsResponse.encode({ data: read }).finish())).toBe(true);
});

test("what is written is read where it came, not copied", () => {
  const bytes = Buffer.from(
    WriteContentsRequest.encode({ part: { $case: "data", value: Buffer.from("abc") } }).finish(),
  );
  const { part } = writeMessage.decode(new BinaryReader(bytes));
  bytes.fill(0);
  expect(part).toEqual({ $case: "data", value: Buffer.alloc(3) });
});

test("every other message is read as the generated decoder reads it", () => {
  const data = fc.uint8Array({ maxLength: 4 });
  const fields = fc.array(
    fc.oneof(
      data.map((value) => new BinaryWriter().uint32(18).bytes(value).finish()),
      data.map((name) =>
        new BinaryWriter()
          .uint32(10)
          .bytes(new Uint8Array([10, name.length, ...name]))
          .finish(),
      ),
      fc.nat(127).map((value) => new Uint8Array([24, value])),
    ),
    { maxLength: 3 },
  );
  fc.assert(
    fc.property(fields, (parts) => {
      const bytes = Buffer.concat(parts);
      expect(writeMessage.decode(new BinaryReader(bytes))).toEqual(WriteContentsRequest.decode(bytes));
    }),
  );
});
