import { parse, parseLosslessNumber } from "lossless-json";
import { RegistryError } from "../core/errors.js";
import { parsePlainJson } from "./plain-json.js";
import { parseUint64 } from "./uint64.js";

// Fatal, so that two different bodies cannot become one text; a byte order mark is taken off.
const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Parses a JSON body. A number is a bigint if it is an unsigned 64-bit integer and NaN if it is any other,
 * so nothing is ever rounded. Throws INVALID_ARGUMENT if the body is not JSON, is nested too deep, or gives
 * a key two different values.
 */
export function parseRequestJson(body: Uint8Array): unknown {
  return parseWith(unsignedOrNaN, body, parsePlainJson);
}

/** The same, but that each number is a LosslessNumber: it keeps what the client wrote. */
export function parseExactJson(body: Uint8Array): unknown {
  return parseWith(parseLosslessNumber, body);
}

/** `shortCut` gives undefined for what it is not sure of. */
function parseWith(
  parseNumber: (text: string) => unknown,
  body: Uint8Array,
  shortCut?: (text: string) => unknown,
): unknown {
  try {
    const text = utf8.decode(body);
    return shortCut?.(text) ?? parse(text, null, { parseNumber, onDuplicateKey: refuseDuplicate });
  } catch (cause) {
    const text = `failed to parse the request JSON buffer: ${explain(body, cause)}`;
    throw new RegistryError("INVALID_ARGUMENT", text, { cause });
  }
}

function unsignedOrNaN(text: string): bigint | number {
  return text === "-0" ? 0n : (parseUint64(text) ?? Number.NaN);
}

// Says where, not what: a key can be as long as the body, and can be a handle.
function refuseDuplicate({ position }: { position: number }): never {
  throw new SyntaxError(`Duplicate key at position ${position}`);
}

function explain(body: Uint8Array, cause: unknown): string {
  if (body.byteLength === 0) return "the body is empty at 0";
  if (cause instanceof RangeError) return "the body is nested too deep";
  if (cause instanceof SyntaxError) return cause.message.replace(/ at position (\d+)$/, " at $1");
  return "the body is not UTF-8";
}
