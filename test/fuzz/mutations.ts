import fc from "fast-check";

/** Changes bytes into others; gives a copy. */
export type Mutate = (bytes: Uint8Array) => Buffer;

/** The change with a name, by which a failure tells what it was. */
export function named(name: string, mutate: Mutate): Mutate {
  return Object.assign((bytes: Uint8Array) => mutate(bytes), { [fc.toStringMethod]: () => name });
}

/** A place in anything, as a share of its length. */
const place = fc.nat(9999);
const at = (share: number, length: number) => Math.floor((share * (length + 1)) / 10_000);

const junk = fc.oneof(
  fc.uint8Array({ maxLength: 8 }).map((bytes) => Buffer.from(bytes)),
  fc
    .constantFrom("\0", "\n", " ", '"', "{", "}", "[", ",", ":", "\\", "%", "é", "0", "-", "e9")
    .map((text) => Buffer.from(text)),
);

/** One change of any bytes: some are flipped, put in, taken out, overwritten, said again, copied elsewhere or cut off. */
const mutation: fc.Arbitrary<Mutate> = fc.oneof(
  fc.tuple(place, fc.integer({ min: 1, max: 255 })).map(([where, bits]) =>
    named(`flip ${bits} at ${where}`, (bytes) => {
      const copy = Buffer.from(bytes);
      const index = at(where, copy.length - 1);
      if (index < copy.length) copy[index] = (copy[index] ?? 0) ^ bits;
      return copy;
    }),
  ),
  fc
    .tuple(place, junk)
    .map(([where, more]) =>
      named(`insert ${more.toString("hex")} at ${where}`, (bytes) =>
        splice(bytes, at(where, bytes.length), 0, more),
      ),
    ),
  fc
    .tuple(place, fc.integer({ min: 1, max: 40 }))
    .map(([where, count]) =>
      named(`remove ${count} at ${where}`, (bytes) => splice(bytes, at(where, bytes.length), count)),
    ),
  fc
    .tuple(place, junk)
    .map(([where, more]) =>
      named(`write ${more.toString("hex")} at ${where}`, (bytes) =>
        splice(bytes, at(where, bytes.length), more.length, more),
      ),
    ),
  fc.tuple(place, place).map(([from, to]) =>
    named(`repeat ${from} to ${to}`, (bytes) => {
      const [start, end] = [at(Math.min(from, to), bytes.length), at(Math.max(from, to), bytes.length)];
      return splice(bytes, start, 0, bytes.subarray(start, end));
    }),
  ),
  fc.tuple(place, place, fc.integer({ min: 1, max: 16 })).map(([from, to, count]) =>
    named(`copy ${count} at ${from} to ${to}`, (bytes) => {
      const copy = Buffer.from(bytes);
      copy.copyWithin(at(to, copy.length), at(from, copy.length), at(from, copy.length) + count);
      return copy;
    }),
  ),
  place.map((where) =>
    named(`cut at ${where}`, (bytes) => Buffer.from(bytes.subarray(0, at(where, bytes.length)))),
  ),
);

/** Up to four of them. */
export const mutated: fc.Arbitrary<Mutate> = fc
  .array(mutation, { minLength: 1, maxLength: 4 })
  .map((mutations) =>
    named(fc.stringify(mutations), (bytes) =>
      mutations.reduce<Buffer>((spoiled, mutate) => mutate(spoiled), Buffer.from(bytes)),
    ),
  );

function splice(
  bytes: Uint8Array,
  index: number,
  count: number,
  more: Uint8Array = new Uint8Array(),
): Buffer {
  return Buffer.concat([bytes.subarray(0, index), more, bytes.subarray(index + count)]);
}
