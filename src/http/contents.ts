import {
  type ContentsRange,
  checksumOf,
  pieceSize,
  pinRange,
  readPieces,
  writePieces,
} from "../core/contents.js";
import { RegistryError } from "../core/errors.js";
import type { FaceContext } from "../core/face-context.js";
import { contentsOff } from "../core/refusals.js";
import { answerEmpty, answerObject } from "./answers.js";
import { callContext } from "./call-context.js";
import type { Exchange } from "./exchange.js";
import { parseUint64 } from "./uint64.js";
import { readQuery, uint64In } from "./v1/query.js";
import { regionNameIn } from "./v1/region-path.js";

/** Bytes read by one call of the driver. */
const pieceBytes = 1024 * 1024;

/** Raw bytes of a region, read, written and summed up through a pin. Refused unless `allowContents`. */
export function createContents(context: FaceContext, allowContents: boolean) {
  const { registry, shutdown } = context;

  function regionName({ path }: Exchange): string {
    if (!allowContents) throw contentsOff();
    return regionNameIn(path);
  }

  return {
    async read(exchange: Exchange): Promise<Response> {
      const name = regionName(exchange);
      using pin = pinRange(registry, name, rangeIn(exchange.query), callContext(exchange, context));
      const piece = new Uint8Array(pieceSize(pin, pieceBytes));
      return await exchange.stream(pin.byteSize, readPieces(pin, piece), shutdown);
    },

    async write(exchange: Exchange): Promise<Response> {
      const name = regionName(exchange);
      const { offset, byteSize } = rangeIn(exchange.query);
      const declared = exchange.declaredLength === null ? undefined : BigInt(exchange.declaredLength);
      if (byteSize !== undefined && declared !== undefined && byteSize !== declared) {
        throw new RegistryError(
          "INVALID_ARGUMENT",
          `byte_size is ${byteSize}, the body has ${declared} bytes; nothing was written`,
        );
      }
      const size = byteSize ?? declared;
      const call = callContext(exchange, context);
      using pin = pinRange(registry, name, { offset, byteSize: size }, call);
      const { signal } = call;
      await writePieces(pin, exchange.bodyPieces(), { what: "the body", byteSize: size, signal });
      return answerEmpty(exchange);
    },

    async checksum(exchange: Exchange): Promise<Response> {
      const name = regionName(exchange);
      const query = readQuery(exchange.query, ["offset", "byte_size"]);
      const range = { offset: uint64In(query, "offset") ?? 0n, byteSize: uint64In(query, "byte_size") };
      const call = callContext(exchange, context);
      using pin = pinRange(registry, name, range, call);
      const sum = await checksumOf(pin, call.signal);
      return answerObject(exchange, {
        crc32c: sum.toString(16).padStart(8, "0"),
        byte_size: pin.byteSize,
      });
    },
  };
}

function rangeIn(query: string): ContentsRange {
  const parameters = new URLSearchParams(query);
  return {
    offset: uint64Parameter(parameters, "offset") ?? 0n,
    byteSize: uint64Parameter(parameters, "byte_size"),
  };
}

function uint64Parameter(parameters: URLSearchParams, name: string): bigint | undefined {
  const [text, ...others] = parameters.getAll(name);
  if (text === undefined) return undefined;
  const value = others.length === 0 ? parseUint64(text) : null;
  if (value === null) {
    throw new RegistryError(
      "INVALID_ARGUMENT",
      `'${name}' must be given at most once, as a whole number of bytes from 0 to 18446744073709551615`,
    );
  }
  return value;
}
