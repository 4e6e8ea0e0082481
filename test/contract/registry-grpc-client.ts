import type { ClientReadableStream, ClientWritableStream, ServiceError } from "@grpc/grpc-js";
import { told } from "../helpers/secrets.js";
import { createGrpcFaceClient, type SentHeaders } from "./face-client.js";
import { connect, metadataOf, refusalOf } from "./registry-channel.js";
import {
  type ContentsRange,
  type EventView,
  type RegistryFaceClient,
  take,
  type Upload,
  type Watching,
} from "./registry-face-client.js";
import {
  durationOf,
  type Message,
  rangeOf,
  regionView,
  requestOf,
  withBigints,
  wordOf,
} from "./registry-messages.js";

/** Data of one message of an upload, in bytes. */
const pieceBytes = 63 * 1024;

/** cudashm.v1.Registry over gRPC. */
export function createGrpcRegistryClient(port: number, headers: SentHeaders = {}): RegistryFaceClient {
  const client = connect(port);
  const metadata = metadataOf(headers);
  const triton = createGrpcFaceClient(port, headers);

  function call(method: string, request: object): Promise<Message> {
    return new Promise((resolve, reject) => {
      client[method](request, metadata, (error: ServiceError | null, answer: Message) => {
        told(error ?? answer);
        if (error === null) resolve(answer);
        else reject(refusalOf(error));
      });
    });
  }

  function beginWrite(name: string, range: ContentsRange = {}): Upload {
    let answer: (error: ServiceError | null) => void = () => {};
    const answered = new Promise<void>((resolve, reject) => {
      answer = (error) => (error === null ? resolve() : reject(refusalOf(error)));
    });
    answered.catch(() => {});
    const stream: ClientWritableStream<Message> = client.WriteContents(
      metadata,
      (error: ServiceError | null) => answer(error),
    );
    // What is sent to a call that was refused already.
    stream.on("error", () => {});
    stream.write({ window: { name, ...rangeOf(range) } });
    return {
      finish: (bytes) => {
        for (let at = 0; at < bytes.byteLength; at += pieceBytes) {
          stream.write({ data: bytes.subarray(at, at + pieceBytes) });
        }
        stream.end();
        return answered;
      },
    };
  }

  return {
    protocol: "grpc",
    triton,
    server: async () => {
      const { epoch, revision, adoption, ...same } = await call("GetServer", {});
      return {
        ...same,
        epoch: BigInt(epoch),
        revision: BigInt(revision),
        adoption: {
          ...adoption,
          pending: BigInt(adoption.pending),
          adopted: BigInt(adoption.adopted),
          refused: adoption.refused.map((each: Message) => ({
            ...each,
            generation: BigInt(each.generation),
          })),
        },
      };
    },
    devices: async () =>
      (await call("ListDevices", {})).devices.map(({ free_bytes, ...same }: Message) => ({
        ...withBigints(same, ["ordinal", "total_bytes", "mapped_bytes", "regions"]),
        free_bytes: free_bytes === undefined ? null : BigInt(free_bytes),
      })),
    get: async (name, waitMs) => regionView(await call("Get", { name, wait: durationOf(waitMs) })),
    list: async ({ state, page_size, ...same } = {}) => {
      const request = {
        ...same,
        state: state && `REGION_STATE_${state.toUpperCase()}`,
        page_size: page_size && Number(page_size),
      };
      const { regions, revision, ...page } = await call("List", request);
      return { ...page, revision: BigInt(revision), regions: regions.map(regionView) };
    },
    register: async (name, registration) => regionView(await call("Register", requestOf(name, registration))),
    renew: async (name, { lease_ms, generation } = {}) =>
      regionView(
        await call("Renew", { name, lease: durationOf(lease_ms), generation: generation?.toString() }),
      ),
    unregister: async (name, { wait_ms, force, generation } = {}) => {
      const request = { name, wait: durationOf(wait_ms), force, generation: generation?.toString() };
      return withBigints(await call("Unregister", request), ["pins"]);
    },
    watch: ({ from_revision, name } = {}) =>
      openWatch(client.Watch({ name, from_revision: from_revision?.toString() }, metadata)),
    readContents: async (name, range = {}) => {
      const pieces: Buffer[] = [];
      const stream = client.ReadContents({ name, ...rangeOf(range) }, metadata);
      for await (const { data } of messagesOf(stream)) pieces.push(data);
      return Buffer.concat(pieces);
    },
    writeContents: (name, bytes, range) => beginWrite(name, range).finish(bytes),
    beginWrite,
    checksum: async (name, range = {}) =>
      withBigints(await call("Checksum", { name, ...rangeOf(range) }), ["byte_size"]),
    close: () => {
      client.close();
      triton.close();
    },
  };
}

async function* messagesOf(stream: ClientReadableStream<Message>): AsyncGenerator<Message, void> {
  try {
    yield* stream;
  } catch (error) {
    throw refusalOf(error as ServiceError);
  }
}

async function openWatch(stream: ClientReadableStream<Message>): Promise<Watching> {
  // Whoever left does not want to hear that.
  stream.on("error", () => {});
  const messages = messagesOf(stream);
  const first = await messages.next();
  if (first.done === true || !first.value.start) throw new Error("the watch began with no start");
  told(first.value);
  const events = viewsOf(messages);
  return {
    start: withBigints(first.value.start, ["epoch", "revision"]),
    take: (count) => take(events, count),
    [Symbol.dispose]: () => stream.cancel(),
  };
}

async function* viewsOf(messages: AsyncIterable<Message>): AsyncGenerator<EventView, void> {
  for await (const message of messages) {
    told(message);
    const { gap, change } = message;
    if (gap) yield { gap: { from: BigInt(gap.from_revision), to: BigInt(gap.to_revision) } };
    else {
      yield {
        change: {
          ...withBigints(change, ["revision"]),
          kind: wordOf("CHANGE_KIND_", change.kind),
          reason: wordOf("REASON_", change.reason),
          region: regionView(change.region),
        },
      };
    }
  }
}
