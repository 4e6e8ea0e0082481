import fc from "fast-check";

/** A number as protobuf writes it, in `extra` bytes more than it takes. */
function varint(value: bigint, extra = 0): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  bytes.push(Number(rest));
  for (let i = 0; i < extra; i++) {
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) | 0x80;
    bytes.push(0);
  }
  return Buffer.from(bytes);
}

function tag(field: number, wireType: number): Buffer {
  return varint((BigInt(field) << 3n) | BigInt(wireType));
}

function lengthDelimited(field: number, content: Uint8Array): Buffer {
  return Buffer.concat([tag(field, 2), varint(BigInt(content.length)), content]);
}

/** Fields of the services' messages, and some that none of them has. */
const field = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: 1, max: 12 }) },
  fc.constantFrom(0, 15, 16, 2 ** 28),
);
const number = fc.oneof(
  fc.constantFrom(0n, 1n, 64n, 4096n, 2n ** 31n, 2n ** 32n, 2n ** 63n, 2n ** 64n - 1n),
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
);
const text = fc.oneof(
  fc
    .constantFrom("", "sentinel", "nobody", ".", "..", "\0", "\ufeffsentinel", "x".repeat(1025))
    .map(Buffer.from),
  fc
    .constantFrom([0xff], [0xed, 0xa0, 0x80], [0xc0, 0xaf], [0xf4, 0x90, 0x80, 0x80])
    .map((bytes) => Buffer.from(bytes)),
  fc.uint8Array({ maxLength: 70 }).map((bytes) => Buffer.from(bytes)),
  fc.uint8Array({ minLength: 64, maxLength: 64 }).map((bytes) => Buffer.from(bytes)),
);

/** Fields of any number and kind, well-formed and not, in one another. */
export const { message: wireBytes } = fc.letrec<{ field: Buffer; message: Buffer }>((tie) => ({
  field: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    fc.tuple(field, text).map(([which, content]) => lengthDelimited(which, content)),
    fc
      .tuple(field, number, fc.constantFrom(0, 0, 0, 1, 9, 20))
      .map(([which, value, extra]) => Buffer.concat([tag(which, 0), varint(value, extra)])),
    fc
      .tuple(field, fc.uint8Array({ maxLength: 8 }))
      .map(([which, bytes]) => Buffer.concat([tag(which, 1), bytes])),
    fc
      .tuple(field, fc.uint8Array({ maxLength: 4 }))
      .map(([which, bytes]) => Buffer.concat([tag(which, 5), bytes])),
    fc.tuple(field, fc.constantFrom(4, 6, 7)).map(([which, wireType]) => tag(which, wireType)),
    // A length that is not its content's.
    fc
      .tuple(field, number, text)
      .map(([which, length, content]) => Buffer.concat([tag(which, 2), varint(length), content])),
    fc.tuple(field, tie("message")).map(([which, content]) => lengthDelimited(which, content)),
    fc
      .tuple(field, tie("message"), fc.option(field, { freq: 8 }))
      .map(([which, content, end]) => Buffer.concat([tag(which, 3), content, tag(end ?? which, 4)])),
  ),
  message: fc.array(tie("field"), { maxLength: 5 }).map((fields) => Buffer.concat(fields)),
}));

/** A field in a field in a field. */
export const deepBytes = fc
  .tuple(field, fc.integer({ min: 1, max: 9000 }), fc.boolean())
  .map(([which, depth, isGroup]) => {
    if (isGroup) {
      const [start, end] = [tag(which, 3), tag(which, 4)];
      return Buffer.concat([...Array(depth).fill(start), ...Array(depth).fill(end)]);
    }
    let content: Buffer = Buffer.alloc(0);
    for (let i = 0; i < Math.min(depth, 1000); i++) content = lengthDelimited(which, content);
    return content;
  });
