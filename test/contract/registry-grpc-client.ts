import { fileURLToPath } from "node:url";
import {
  type Client,
  type ClientReadableStream,
  type ClientWritableStream,
  credentials,
  loadPackageDefinition,
  Metadata,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { keepSecret, told } from "../helpers/secrets.js";
import { createGrpcFaceClient, type SentHeaders } from "./face-client.js";
import {
  type ContentsRange,
  type EventView,
  FaceRefusal,
  type RegionView,
  type RegistrationFields,
  type RegistryFaceClient,
  take,
  type Upload,
  type Watching,
} from "./registry-face-client.js";

/** Data of one message of an upload, in bytes. */
const pieceBytes = 63 * 1024;

// biome-ignore lint/suspicious/noExplicitAny: whatever the other decoder makes of it.
type Message = any;

const definition = loadSync("cudashm/v1/registry.proto", {
  includeDirs: [fileURLToPath(new URL("../../proto/", import.meta.url))],
  keepCase: true,
  longs: String,
  enums: String,
  defaults: true,
});
const { cudashm } = loadPackageDefinition(definition) as Message;

/** A session that a stream holds. */
export interface HeldSession {
  readonly id: string;
  /** What a call brings that belongs to it. */
  readonly headers: SentHeaders;
  /** Its secret, to go on with it. */
  readonly secret: string;
  /** How the stream ended, once it has. */
  readonly ended: Promise<FaceRefusal>;
  /** Leaves as a client does that is done. */
  cancel(): void;
}

/** Opens a session, or goes on with one. Rejects with the refusal. */
export async function holdSession(
  port: number,
  { resume, grace_ms }: { readonly resume?: string; readonly grace_ms?: number } = {},
  headers: SentHeaders = {},
): Promise<HeldSession> {
  const client = connect(port);
  const request = { resume, resume_grace: durationOf(grace_ms) };
  const stream: ClientReadableStream<Message> = (client as Message).Hold(request, metadataOf(headers));
  const ended = new Promise<FaceRefusal>((resolve) => {
    stream.on("error", (error: ServiceError) => resolve(refusalOf(error)));
  }).finally(() => client.close());
  return new Promise((resolve, reject) => {
    void ended.then(reject);
    stream.on("data", ({ session_id: id, secret }) => {
      keepSecret("a session's secret", Buffer.from(secret));
      const own = { ...headers, "cudashm-session": secret };
      resolve({ id, secret, headers: own, ended, cancel: () => stream.cancel() });
    });
  });
}

/** cudashm.v1.Registry with proto-loader, a decoder that shares nothing with the service's. */
export function createGrpcRegistryClient(port: number, headers: SentHeaders = {}): RegistryFaceClient {
  const client = connect(port);
  const metadata = metadataOf(headers);
  const triton = createGrpcFaceClient(port, headers);

  function call(method: string, request: object): Promise<Message> {
    return new Promise((resolve, reject) => {
      (client as Message)[method](request, metadata, (error: ServiceError | null, answer: Message) => {
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
    const stream: ClientWritableStream<Message> = (client as Message).WriteContents(
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
      openWatch((client as Message).Watch({ name, from_revision: from_revision?.toString() }, metadata)),
    readContents: async (name, range = {}) => {
      const pieces: Buffer[] = [];
      const stream = (client as Message).ReadContents({ name, ...rangeOf(range) }, metadata);
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

function connect(port: number): Client {
  return new cudashm.v1.Registry(`127.0.0.1:${port}`, credentials.createInsecure());
}

function metadataOf(headers: SentHeaders): Metadata {
  const metadata = new Metadata();
  for (const [key, value] of Object.entries(headers)) metadata.set(key, value);
  return metadata;
}

function refusalOf({ code, details }: ServiceError): FaceRefusal {
  told(details);
  return new FaceRefusal(status[code] ?? String(code), details);
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

function regionView({ lease, ...message }: Message): RegionView {
  const { state, reason, session, exporter } = message;
  return {
    ...withBigints(message, [
      "device_id",
      "byte_size",
      "offset",
      "allocation_byte_size",
      "pins",
      "generation",
    ]),
    state: wordOf("REGION_STATE_", state),
    reason: wordOf("REASON_", reason),
    session: session === "" ? null : session,
    registered_at: msOf(message.registered_at),
    last_used_at: msOf(message.last_used_at),
    lease_ms: msOf(lease),
    lease_expires_at: msOf(message.lease_expires_at),
    exporter: exporter && withBigints(exporter, ["pid", "start_time", "pid_namespace"]),
  };
}

/** The message, these fields of which hold whole numbers. */
function withBigints(message: Message, fields: readonly string[]): Message {
  return { ...message, ...Object.fromEntries(fields.map((field) => [field, BigInt(message[field])])) };
}

function wordOf(prefix: string, value: string): string {
  if (!value.startsWith(prefix)) throw new Error(`${value} is no ${prefix}`);
  return value.slice(prefix.length).toLowerCase();
}

/** Milliseconds of a Timestamp or a Duration; null if there is none. */
function msOf(time: { readonly seconds: string; readonly nanos: number } | null): number | null {
  return time === null ? null : Number(time.seconds) * 1000 + time.nanos / 1e6;
}

function durationOf(ms: number | undefined): object | undefined {
  return ms === undefined ? undefined : { seconds: Math.trunc(ms / 1000), nanos: (ms % 1000) * 1e6 };
}

function rangeOf({ offset, byte_size }: ContentsRange): object {
  return { offset: offset?.toString(), byte_size: byte_size?.toString() };
}

function requestOf(name: string, registration: RegistrationFields): object {
  const { device_id, byte_size, offset, lease_ms, exporter, replace_generation, ...same } = registration;
  return {
    ...same,
    name,
    device_id: device_id?.toString(),
    byte_size: byte_size.toString(),
    offset: offset?.toString(),
    lease: durationOf(lease_ms),
    exporter: exporter && {
      ...exporter,
      pid: exporter.pid && Number(exporter.pid),
      start_time: exporter.start_time?.toString(),
      pid_namespace: exporter.pid_namespace?.toString(),
    },
    replace_generation: replace_generation?.toString(),
  };
}
