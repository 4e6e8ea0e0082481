import { internalErrorText, RegistryError } from "../core/errors.js";
import type { FaceContext } from "../core/face-context.js";
import type { RegionPin, RegionWindow } from "../core/region.js";
import { assertRegionName } from "../core/region-name.js";
import { answerEmpty } from "./answers.js";
import { callContext } from "./call-context.js";
import type { Exchange } from "./exchange.js";
import { nameInPath } from "./request-target.js";
import { parseUint64 } from "./uint64.js";

/** Bytes copied by one call of the driver. */
const pieceBytes = 1024 * 1024;

const regionPath = "/v1/regions/";

/** Raw bytes of a region, read and written through a pin. Refused unless `allowContents`. */
export function createContents(context: FaceContext, allowContents: boolean) {
  const { registry, shutdown } = context;

  function regionName(exchange: Exchange): string {
    if (!allowContents) {
      throw new RegistryError(
        "PERMISSION_DENIED",
        "the contents of regions are not served; start the service with --allow-contents to serve them",
      );
    }
    const name = nameInPath(exchange.path, regionPath);
    assertRegionName(name);
    return name;
  }

  /** From `offset`, for `byteSize` bytes or to the region's end. Whether it fits is the pin's to say. */
  function windowOf(name: string, offset: bigint, byteSize: bigint | null): RegionWindow {
    if (byteSize !== null) return { offset, byteSize };
    const end = registry.status(name).byteSize;
    return { offset, byteSize: offset < end ? end - offset : 0n };
  }

  return {
    async read(exchange: Exchange): Promise<Response> {
      const name = regionName(exchange);
      const { offset, byteSize } = rangeIn(exchange.query);
      using pin = registry.pin(name, windowOf(name, offset, byteSize), callContext(exchange, context));
      return await exchange.stream(pin.byteSize, readPieces(pin), shutdown);
    },

    async write(exchange: Exchange): Promise<Response> {
      const name = regionName(exchange);
      const { offset, byteSize } = rangeIn(exchange.query);
      const declared = exchange.declaredLength === null ? null : BigInt(exchange.declaredLength);
      if (byteSize !== null && declared !== null && byteSize !== declared) {
        throw new RegistryError(
          "INVALID_ARGUMENT",
          `byte_size is ${byteSize}, the body has ${declared} bytes; nothing was written`,
        );
      }
      const size = byteSize ?? declared;
      const call = callContext(exchange, context);
      using pin = registry.pin(name, windowOf(name, offset, size), call);
      const written = await writeBody(pin, exchange.bodyPieces(), call.signal);
      if (size !== null && written !== size) {
        throw new RegistryError(
          "INVALID_ARGUMENT",
          `byte_size is ${size}, the body ended after ${written} bytes, which were written`,
        );
      }
      return answerEmpty(exchange);
    },
  };
}

async function* readPieces(pin: RegionPin): AsyncGenerator<Uint8Array, void> {
  const piece = new Uint8Array(Number(smaller(BigInt(pieceBytes), pin.byteSize)));
  for (let offset = 0n; offset < pin.byteSize; offset += BigInt(piece.byteLength)) {
    const rest = pin.byteSize - offset;
    const into = rest < BigInt(piece.byteLength) ? piece.subarray(0, Number(rest)) : piece;
    await pin.read(offset, into);
    yield into;
  }
}

/** Writes the body from the start of the pinned window; returns how many bytes it had. */
async function writeBody(
  pin: RegionPin,
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): Promise<bigint> {
  const piece = new Uint8Array(Number(smaller(BigInt(pieceBytes), pin.byteSize)));
  let filled = 0;
  let written = 0n;
  const flush = async () => {
    await writePiece(pin, written, piece.subarray(0, filled), signal);
    written += BigInt(filled);
    filled = 0;
  };
  for await (const received of body) {
    if (written + BigInt(filled + received.byteLength) > pin.byteSize) {
      throw new RegistryError(
        "OUT_OF_RANGE",
        `the body is longer than the ${pin.byteSize} bytes to write; ${firstWritten(written)}`,
      );
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
  return written;
}

/** Writes one piece; a failure says how far the write had come. */
async function writePiece(
  pin: RegionPin,
  offset: bigint,
  piece: Uint8Array,
  signal: AbortSignal | undefined,
): Promise<void> {
  try {
    signal?.throwIfAborted();
    await pin.write(offset, piece);
  } catch (cause) {
    const known = cause instanceof RegistryError;
    const text = `${known ? cause.message : internalErrorText}; ${firstWritten(offset)}`;
    throw new RegistryError(known ? cause.code : "INTERNAL", text, { cause });
  }
}

function firstWritten(bytes: bigint): string {
  return bytes === 0n ? "nothing was written" : `the first ${bytes} bytes were written`;
}

function rangeIn(query: string): { offset: bigint; byteSize: bigint | null } {
  const parameters = new URLSearchParams(query);
  return {
    offset: uint64Parameter(parameters, "offset") ?? 0n,
    byteSize: uint64Parameter(parameters, "byte_size"),
  };
}

function uint64Parameter(parameters: URLSearchParams, name: string): bigint | null {
  const [text, ...others] = parameters.getAll(name);
  if (text === undefined) return null;
  const value = others.length === 0 ? parseUint64(text) : null;
  if (value === null) {
    throw new RegistryError(
      "INVALID_ARGUMENT",
      `'${name}' must be given at most once, as a whole number of bytes from 0 to 18446744073709551615`,
    );
  }
  return value;
}

function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
