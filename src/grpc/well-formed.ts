import { WireType } from "@bufbuild/protobuf/wire";

/** As deep as other decoders go. */
const maxGroups = 100;

/**
 * Throws unless `bytes` are fields from the first to the last, and those of `messageFields` too. The generated
 * decoders stop without a word at tag 0 and at a stray end of a group, and take of a tag or a length that is larger
 * than 32 bits the lower ones. What follows would be lost, or be taken for something else, and an unregister whose
 * name is lost unregisters everything.
 */
export function assertWellFormed(bytes: Uint8Array, messageFields: readonly number[] = []): void {
  const cursor = new Cursor(bytes);
  while (!cursor.isAtEnd) {
    const tag = cursor.uint32();
    const [field, wireType] = [fieldOf(tag), tag & 7];
    if (wireType === WireType.LengthDelimited && messageFields.includes(field)) {
      assertWellFormed(cursor.take(cursor.uint32()));
    } else {
      skip(cursor, field, wireType, maxGroups);
    }
  }
}

function fieldOf(tag: number): number {
  const field = tag >>> 3;
  if (field === 0) throw new RangeError("no field has number 0");
  return field;
}

function skip(cursor: Cursor, field: number, wireType: number, groupsLeft: number): void {
  switch (wireType) {
    case WireType.Varint:
      cursor.skipVarint();
      return;
    case WireType.Bit64:
      cursor.skip(8);
      return;
    case WireType.LengthDelimited:
      cursor.skip(cursor.uint32());
      return;
    case WireType.Bit32:
      cursor.skip(4);
      return;
    case WireType.StartGroup:
      skipGroup(cursor, field, groupsLeft);
      return;
    default:
      throw new RangeError("no field has this wire type");
  }
}

function skipGroup(cursor: Cursor, group: number, groupsLeft: number): void {
  if (groupsLeft === 0) throw new RangeError("groups are nested too deep");
  for (;;) {
    const tag = cursor.uint32();
    const [field, wireType] = [fieldOf(tag), tag & 7];
    if (wireType !== WireType.EndGroup) skip(cursor, field, wireType, groupsLeft - 1);
    else if (field === group) return;
    else throw new RangeError("a group ends that is not the last one to begin");
  }
}

/** A place in bytes. Each method throws if they end too soon. */
class Cursor {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  /** A number of at most 32 bits in at most the five bytes that it takes. */
  uint32(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.#next();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80 && value < 2 ** 32) return value;
      if (byte < 0x80) break;
    }
    throw new RangeError("a number has more than 32 bits");
  }

  skipVarint(): void {
    for (let count = 0; count < 10; count++) if (this.#next() < 0x80) return;
    throw new RangeError("a number has more than 64 bits");
  }

  skip(count: number): void {
    if (count > this.#bytes.length - this.#at) throw new RangeError("cut short");
    this.#at += count;
  }

  take(count: number): Uint8Array {
    this.skip(count);
    return this.#bytes.subarray(this.#at - count, this.#at);
  }

  #next(): number {
    const byte = this.#bytes[this.#at++];
    if (byte === undefined) throw new RangeError("cut short");
    return byte;
  }
}
