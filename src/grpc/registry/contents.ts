import { checksumOf, pieceSize, pinRange, readPieces, writePieces } from "../../core/contents.js";
import { RegistryError } from "../../core/errors.js";
import type { FaceContext } from "../../core/face-context.js";
import { contentsOff } from "../../core/refusals.js";
import { assertRegionName } from "../../core/region-name.js";
import type { ClientStreamMethod } from "../client-stream.js";
import * as wire from "../gen/cudashm/v1/registry.js";
import type { ServerStreamMethod } from "../server-stream.js";
import type { UnaryMethod } from "../unary-call.js";
import { encodeMessage } from "../wire.js";
import { createReadMessage, writeMessage } from "./content-messages.js";

/** Bytes of one message. */
const readMessageBytes = 256 * 1024;

const { readContents, writeContents, checksum } = wire.RegistryService;

/** Bytes of a region. */
export function createReadContents(
  { registry }: FaceContext,
  allowContents: boolean,
): ServerStreamMethod<wire.ReadContentsRequest> {
  return {
    path: readContents.path,
    operation: "readRegionContents",
    request: wire.ReadContentsRequest,
    async *handle({ name, offset, byteSize }, call) {
      assertServed(allowContents, name);
      using pin = pinRange(registry, name, { offset, byteSize }, call);
      // One for all of them: each is asked for once grpc-js has taken the one before.
      const { message, data } = createReadMessage(pieceSize(pin, readMessageBytes));
      for await (const piece of readPieces(pin, data)) {
        yield piece.byteLength === data.byteLength ? message : lastMessage(piece);
      }
    },
  };
}

/** Bytes for a region. */
export function createWriteContents(
  { registry }: FaceContext,
  allowContents: boolean,
): ClientStreamMethod<wire.WriteContentsRequest> {
  return {
    path: writeContents.path,
    operation: "writeRegionContents",
    request: writeMessage,
    messageFields: [1],
    async handle(messages, call) {
      if (!allowContents) throw contentsOff();
      const { name, offset, byteSize } = await windowIn(messages);
      assertRegionName(name);
      using pin = pinRange(registry, name, { offset, byteSize }, call);
      const { signal } = call;
      const bytesWritten = await writePieces(pin, dataIn(messages), { what: "the data", byteSize, signal });
      return encodeMessage(wire.WriteContentsResponse, { bytesWritten });
    },
  };
}

/** The checksum of bytes of a region. */
export function createChecksum(
  { registry }: FaceContext,
  allowContents: boolean,
): UnaryMethod<wire.ChecksumRequest> {
  return {
    path: checksum.path,
    operation: "checksumRegion",
    request: wire.ChecksumRequest,
    async handle({ name, offset, byteSize }, call) {
      assertServed(allowContents, name);
      using pin = pinRange(registry, name, { offset, byteSize }, call);
      const crc32c = await checksumOf(pin, call.signal);
      return encodeMessage(wire.ChecksumResponse, { crc32c, byteSize: pin.byteSize });
    },
  };
}

function lastMessage({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return encodeMessage(wire.ReadContentsResponse, { data: Buffer.from(buffer, byteOffset, byteLength) });
}

function assertServed(allowContents: boolean, name: string): void {
  if (!allowContents) throw contentsOff();
  assertRegionName(name);
}

async function windowIn(
  messages: AsyncGenerator<wire.WriteContentsRequest, void>,
): Promise<wire.ContentsWindow> {
  const { value } = await messages.next();
  if (value?.part?.$case === "window") return value.part.value;
  throw new RegistryError("INVALID_ARGUMENT", "the first message must be a window: which region, and where");
}

async function* dataIn(
  messages: AsyncGenerator<wire.WriteContentsRequest, void>,
): AsyncGenerator<Uint8Array, void> {
  for await (const { part } of messages) {
    if (part?.$case !== "data") {
      throw new RegistryError("INVALID_ARGUMENT", "every message after the first must have data");
    }
    yield part.value;
  }
}
