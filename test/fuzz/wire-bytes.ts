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

/** Reads what is well-formed, in other words than the service's. Throws at what is not. */
class WireReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** The last text of a field of that number; those of another wire type are not it. */
  lastText(wanted: number): string {
    let text = "";
    while (this.#at < this.#bytes.length) {
      const { field, wireType } = this.#tag();
      if (field === wanted && wireType === 2) text = this.#take(Number(this.#varint())).toString();
      else this.#skip(field, wireType);
    }
    return text;
  }

  #tag(): { field: number; wireType: number } {
    const tag = Number(BigInt.asUintN(32, this.#varint()));
    if (tag >>> 3 === 0) throw new Error("no field has number 0");
    return { field: tag >>> 3, wireType: tag & 7 };
  }

  #skip(field: number, wireType: number): void {
    if (wireType === 0) this.#varint();
    else if (wireType === 1) this.#take(8);
    else if (wireType === 2) this.#take(Number(this.#varint()));
    else if (wireType === 5) this.#take(4);
    else if (wireType === 3) this.#skipGroup(field);
    else throw new Error("no wire type of a field");
  }

  #skipGroup(group: number): void {
    for (;;) {
      const { field, wireType } = this.#tag();
      if (wireType !== 4) this.#skip(field, wireType);
      else if (field === group) return;
      else throw new Error("the end of another group");
    }
  }

  #varint(): bigint {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const [byte = 0] = this.#take(1);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }

  #take(count: number): Buffer {
    if (count > this.#bytes.length - this.#at) throw new Error("cut short");
    this.#at += count;
    return this.#bytes.subarray(this.#at - count, this.#at);
  }
}

/** The text of a message's field; null if the message is not well-formed. */
export function textIn(bytes: Buffer, number: number): string | null {
  try {
    return new WireReader(bytes).lastText(number);
  } catch {
    return null;
  }
}
