import { request as httpRequest } from "node:http";
import { text as textOf } from "node:stream/consumers";
import { parse, stringify } from "lossless-json";
import { told } from "../helpers/secrets.js";
import { createHttpFaceClient, type SentHeaders } from "./face-client.js";
import {
  type ContentsRange,
  type EventView,
  FaceRefusal,
  type RegionView,
  type RegistrationFields,
  type RegistryFaceClient,
  take,
  type Watching,
} from "./registry-face-client.js";

/** The status that each code comes with. */
const statuses: Readonly<Record<string, number>> = {
  INVALID_ARGUMENT: 400,
  NOT_FOUND: 404,
  ALREADY_EXISTS: 400,
  PERMISSION_DENIED: 403,
  UNAUTHENTICATED: 401,
  FAILED_PRECONDITION: 400,
  OUT_OF_RANGE: 400,
  RESOURCE_EXHAUSTED: 429,
  UNIMPLEMENTED: 501,
  UNAVAILABLE: 503,
  DEADLINE_EXCEEDED: 504,
  INTERNAL: 500,
};

// biome-ignore lint/suspicious/noExplicitAny: an answer has as many shapes as there are operations.
type Body = any;

/** /v1 with fetch, its events read from the bytes that come. */
export function createHttpRegistryClient(port: number, headers: SentHeaders = {}): RegistryFaceClient {
  const base = `http://127.0.0.1:${port}`;
  const pathOf = (name: string, rest = "") => `/v1/regions/${encodeURIComponent(name)}${rest}`;

  async function send(
    method: string,
    path: string,
    body?: string | Uint8Array<ArrayBuffer>,
  ): Promise<Buffer> {
    const answer = await fetch(base + path, { method, headers, ...(body !== undefined && { body }) });
    told([...answer.headers]);
    const bytes = Buffer.from(await answer.arrayBuffer());
    if (answer.status !== 200)
      throw refusalOf(answer.status, answer.headers.get("x-error-code"), String(bytes));
    return bytes;
  }

  async function call(method: string, path: string, body?: object): Promise<Body> {
    const text = String(await send(method, path, body === undefined ? undefined : stringify(body)));
    told(text);
    return exact(text);
  }

  return {
    protocol: "http",
    triton: createHttpFaceClient(port, headers),
    server: () => call("GET", "/v1"),
    devices: async () => (await call("GET", "/v1/devices")).devices,
    get: async (name, waitMs) =>
      regionView(await call("GET", pathOf(name) + queryOf({ wait: waitOf(waitMs) }))),
    list: async (query = {}) => {
      const { regions, ...page } = await call("GET", `/v1/regions${queryOf({ ...query })}`);
      return { ...page, regions: regions.map(regionView) };
    },
    register: async (name, registration) =>
      regionView(await call("PUT", pathOf(name), registrationBody(registration))),
    renew: async (name, { lease_ms, generation } = {}) => {
      const body = { lease_seconds: secondsOf(lease_ms), generation };
      return regionView(await call("POST", pathOf(name, "/renew"), body));
    },
    unregister: (name, { wait_ms, force, generation } = {}) =>
      call("DELETE", pathOf(name) + queryOf({ wait: waitOf(wait_ms), force, generation })),
    watch: ({ from_revision, name } = {}) =>
      openEvents(`${base}/v1/events${queryOf({ from_revision, region: name })}`, headers),
    readContents: (name, range) => send("GET", pathOf(name, contentsOf(range))),
    writeContents: async (name, bytes, range) => {
      await send("PUT", pathOf(name, contentsOf(range)), Uint8Array.from(bytes));
    },
    beginWrite: (name) => {
      const options = { host: "127.0.0.1", port, method: "PUT", path: pathOf(name, "/contents"), headers };
      const outgoing = httpRequest({ ...options, agent: false });
      const answered = new Promise<void>((resolve, reject) => {
        outgoing.on("error", reject);
        outgoing.on("response", (answer) => {
          const code = String(answer.headers["x-error-code"]);
          textOf(answer).then((text) => {
            if (answer.statusCode === 200) resolve();
            else reject(refusalOf(answer.statusCode, code, text));
          }, reject);
        });
      });
      answered.catch(() => {});
      outgoing.flushHeaders();
      return {
        finish: (bytes) => {
          outgoing.end(bytes);
          return answered;
        },
      };
    },
    checksum: async (name, range = {}) => {
      const { crc32c, ...rest } = await call("GET", pathOf(name, `/checksum${queryOf({ ...range })}`));
      if (!/^[0-9a-f]{8}$/.test(crc32c)) throw new Error(`no checksum: ${crc32c}`);
      return { crc32c: Number.parseInt(crc32c, 16), ...rest };
    },
    close: () => {},
  };
}

/** Whole numbers are bigints, so that a digit lost, or a number sent as a text, is noticed. */
function exact(text: string): Body {
  return parse(text, null, (digits) => (/^\d+$/.test(digits) ? BigInt(digits) : Number(digits)));
}

function refusalOf(status: number | undefined, code: string | null, text: string): FaceRefusal {
  told(text);
  if (code === null || statuses[code] !== status) {
    throw new Error(`status ${status} does not go with ${code}: ${text}`);
  }
  return new FaceRefusal(code, exact(text).error);
}

function regionView(json: Body): RegionView {
  const { lease_seconds, registered_at, last_used_at, lease_expires_at, ...same } = json;
  return {
    ...same,
    registered_at: timeOf(registered_at),
    last_used_at: timeOf(last_used_at),
    lease_ms: lease_seconds === null ? null : Math.round(Number(lease_seconds) * 1000),
    lease_expires_at: timeOf(lease_expires_at),
  };
}

function timeOf(text: string | null): number | null {
  if (text === null) return null;
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text)) throw new Error(`no time: ${text}`);
  return Date.parse(text);
}

function registrationBody({ raw_handle, lease_ms, ...same }: RegistrationFields): object {
  const b64 = Buffer.from(raw_handle).toString("base64");
  return { raw_handle: { b64 }, lease_seconds: secondsOf(lease_ms), ...same };
}

function secondsOf(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1000;
}

function waitOf(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : `${ms}ms`;
}

function contentsOf(range: ContentsRange = {}): string {
  return `/contents${queryOf({ ...range })}`;
}

function queryOf(values: Readonly<Record<string, string | bigint | boolean | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== undefined) query.set(name, String(value));
  return query.size === 0 ? "" : `?${query}`;
}

async function openEvents(url: string, headers: SentHeaders): Promise<Watching> {
  const leaving = new AbortController();
  const answer = await fetch(url, { headers, signal: leaving.signal });
  if (answer.status !== 200 || answer.body === null) {
    throw refusalOf(answer.status, answer.headers.get("x-error-code"), await answer.text());
  }
  const blocks = eventsIn(answer.body);
  const hello = await blocks.next();
  if (hello.done === true || hello.value.event !== "hello") throw new Error("the events began with no hello");
  const events = viewsOf(blocks);
  return {
    start: hello.value.data,
    take: (count) => take(events, count),
    [Symbol.dispose]: () => leaving.abort(),
  };
}

interface Block {
  readonly event: string;
  readonly data: Body;
}

async function* eventsIn(body: ReadableStream<Uint8Array>): AsyncGenerator<Block, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of body) {
    const blocks = (rest + decoder.decode(bytes, { stream: true })).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      told(block);
      const [, event, data] = /^(?:id: .+\n)?event: (\w+)\ndata: (.+)$/.exec(block) ?? [];
      if (event !== undefined && data !== undefined) yield { event, data: exact(data) };
    }
  }
}

async function* viewsOf(blocks: AsyncIterable<Block>): AsyncGenerator<EventView, void> {
  for await (const { event, data } of blocks) {
    if (event === "error") throw new FaceRefusal(data.code, data.error);
    if (event === "gap") {
      // Only here can a reader say that it comes from another run of the service.
      const { restarted: _, ...gap } = data;
      yield { gap };
    } else {
      const { region, ...change } = data;
      yield { change: { ...change, region: regionView(region) } };
    }
  }
}
