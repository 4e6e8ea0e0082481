import { abortError, type CallSignal } from "./abort.js";
import { internalErrorText, RegistryError } from "./errors.js";
import { pinRevoked } from "./refusals.js";
import type { CallContext, RegionPin } from "./region.js";
import type { RegionRegistry } from "./registry.js";

/** Part of a region: `byteSize` bytes from `offset` on, or all there are unless that is given. */
export interface ContentsRange {
  readonly offset: bigint;
  readonly byteSize?: bigint | undefined;
}

/** How bytes are written. */
export interface WriteOptions {
  /** What errors call them, such as `the body`. */
  readonly what: string;
  /** How many they have to be; any number unless given. */
  readonly byteSize?: bigint | undefined;
  readonly signal?: CallSignal | undefined;
}

/** Bytes of which the checksum is made before the next look at the signal. */
const checksumPieceBytes = 64n * 1024n * 1024n;

/** Bytes written by one call of the driver. */
const writePieceBytes = 1024 * 1024;

/** Pins a range. Throws what the registry's `pin` throws. */
export function pinRange(
  registry: RegionRegistry,
  name: string,
  { offset, byteSize }: ContentsRange,
  context: CallContext,
): RegionPin {
  if (byteSize !== undefined) return registry.pin(name, { offset, byteSize }, context);
  // Whether the caller may know that is the pin's to say, as it is where a size is given.
  const end = registry.status(name).byteSize;
  return registry.pin(name, { offset, byteSize: offset < end ? end - offset : 0n }, context);
}

/** Bytes of a piece of what is pinned: `most` unless there are fewer. */
export function pieceSize(pin: RegionPin, most: number): number {
  return Number(smaller(BigInt(most), pin.byteSize));
}

/** The pinned bytes, in pieces as long as `piece`, but for the last; each is in `piece` until the next is asked for. */
export async function* readPieces(pin: RegionPin, piece: Uint8Array): AsyncGenerator<Uint8Array, void> {
  for (let offset = 0n; offset < pin.byteSize; offset += BigInt(piece.byteLength)) {
    const rest = pin.byteSize - offset;
    const into = rest < BigInt(piece.byteLength) ? piece.subarray(0, Number(rest)) : piece;
    await pin.read(offset, into);
    yield into;
  }
}

/**
 * Writes `data` from the start of the pinned window and takes no more of them than it can write. Answers how many
 * bytes there were. Rejects with OUT_OF_RANGE if they are too many, INVALID_ARGUMENT if they are too few, or with
 * what else went wrong; the text says how far it had come.
 */
export async function writePieces(
  pin: RegionPin,
  data: AsyncIterable<Uint8Array>,
  { what, byteSize, signal }: WriteOptions,
): Promise<bigint> {
  const piece = new Uint8Array(pieceSize(pin, writePieceBytes));
  let filled = 0;
  let written = 0n;
  const flush = async () => {
    if (signal?.aborted) throw abortError(signal);
    await pin.write(written, piece.subarray(0, filled));
    written += BigInt(filled);
    filled = 0;
  };
  const pieces = data[Symbol.asyncIterator]();
  try {
    for (let next = await orRevoked(pin, pieces); next.done !== true; next = await orRevoked(pin, pieces)) {
      const received = next.value;
      if (written + BigInt(filled + received.byteLength) > pin.byteSize) {
        throw new RegistryError("OUT_OF_RANGE", `${what} is longer than the ${pin.byteSize} bytes to write`);
      }
      for (let taken = 0; taken < received.byteLength; ) {
        const part = received.subarray(taken, taken + piece.byteLength - filled);
        piece.set(part, filled);
        taken += part.byteLength;
        filled += part.byteLength;
        if (filled === piece.byteLength) await flush();
      }
    }
    if (filled > 0) await flush();
  } catch (cause) {
    throw brokenOff(cause, written);
  } finally {
    // Not waited for: it may itself wait for the piece that does not come.
    void pieces.return?.().catch(() => {});
  }
  if (byteSize === undefined || written === byteSize) return written;
  throw new RegistryError(
    "INVALID_ARGUMENT",
    `byte_size is ${byteSize}, ${what} ended after ${written} bytes, which were written`,
  );
}

/** The next of the data, unless the pin is revoked first: whoever waits for the rest would not hear of that. */
function orRevoked<T>(pin: RegionPin, pieces: AsyncIterator<T>): Promise<IteratorResult<T>> {
  return new Promise((resolve, reject) => {
    const stopListening = pin.onRevoked(() => reject(pinRevoked(pin.region.name)));
    // It stops before the answer is given: a pin has one listener, which is the next piece's by then.
    pieces.next().then(
      (next) => {
        stopListening();
        resolve(next);
      },
      (error) => {
        stopListening();
        reject(error);
      },
    );
  });
}

/** CRC-32C of the pinned bytes. Rejects with the signal's reason soon after that is aborted. */
export async function checksumOf(pin: RegionPin, signal: CallSignal | undefined): Promise<number> {
  let sum = 0;
  for (let offset = 0n; offset < pin.byteSize; offset += checksumPieceBytes) {
    if (signal?.aborted) throw abortError(signal);
    sum = await pin.checksum(offset, smaller(checksumPieceBytes, pin.byteSize - offset), sum);
  }
  return sum;
}

/** What ended a write, with how far that had come. */
function brokenOff(cause: unknown, written: bigint): RegistryError {
  const known = cause instanceof RegistryError ? cause : undefined;
  const done = written === 0n ? "nothing was written" : `the first ${written} bytes were written`;
  return new RegistryError(known?.code ?? "INTERNAL", `${known?.message ?? internalErrorText}; ${done}`, {
    driver: known?.driver,
    cause,
  });
}

function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
