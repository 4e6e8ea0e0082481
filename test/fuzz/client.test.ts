import fc from "fast-check";
import { parse, stringify } from "lossless-json";
import { expect, test } from "vitest";
import { CudaSharedMemoryError } from "../../src/client/errors.js";
import { eventsIn, type StreamEvent } from "../../src/client/event-stream.js";
import { parseExact } from "../../src/client/read-json.js";
import { decodeRegion } from "../../src/client/region.js";
import { decodeStatuses } from "../../src/client/wire.js";
import { holds, timeout } from "./budget.js";
import { mutated } from "./mutations.js";

/** The HTML standard's reading of a whole stream, without an eye to pieces. */
function eventsByTheStandard(stream: string): StreamEvent[] {
  const events: StreamEvent[] = [];
  let [data, type, id] = ["", "", ""];
  const lines = stream.replace(/^\ufeff/, "").match(/[^\r\n]*(?:\r\n|\r|\n)/g) ?? [];
  for (const line of lines.map((each) => each.replace(/[\r\n]+$/, ""))) {
    if (line === "") {
      if (data !== "") events.push({ type: type === "" ? "message" : type, data: data.slice(0, -1), id });
      [data, type] = ["", ""];
      continue;
    }
    const [, field, value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === "data") data += `${value}\n`;
    else if (field === "event") type = value;
    else if (field === "id" && !value.includes("\0")) id = value;
  }
  return events;
}

const word = fc.oneof(
  fc.constantFrom("data", "data:", "data: ", "event:", "id:", "id: a\0b", "retry: 9", ":", " ", "\ufeff"),
  fc.constantFrom("\n", "\r", "\r\n", "\n\n", "\r\r", "\r\n\r\n"),
  fc.string({ unit: "grapheme", maxLength: 8 }),
);
const events = fc.array(word, { maxLength: 40 }).map((words) => words.join(""));

test(
  "a stream of events is read as the HTML standard has it, however it comes apart",
  async () => {
    await holds(
      fc.asyncProperty(events, fc.array(fc.integer({ min: 1, max: 7 })), async (text, sizes) => {
        const read: StreamEvent[] = [];
        for await (const event of eventsIn(new Response(inPieces(text, sizes)))) read.push(event);
        // Through UTF-8, as the client has it.
        expect(read).toEqual(eventsByTheStandard(Buffer.from(text).toString()));
      }),
      1000,
    );
  },
  timeout,
);

/** The text's bytes in pieces of these sizes, over and over. */
function inPieces(text: string, sizes: readonly number[]): ReadableStream<Uint8Array> {
  const bytes = Buffer.from(text);
  return new ReadableStream({
    start(controller) {
      for (let at = 0, next = 0; at < bytes.length; next++) {
        const end = at + (sizes[next % sizes.length] ?? bytes.length);
        controller.enqueue(bytes.subarray(at, end));
        at = end;
      }
      controller.close();
    },
  });
}

test.each([
  { what: "a line", begin: "data: ", more: "x" },
  { what: "an event", begin: "", more: "data: x\n" },
])("$what without an end is given up, and not kept for ever", async ({ begin, more }) => {
  let pieces = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      controller.enqueue(Buffer.from(pieces++ === 0 ? begin || more : more.repeat(2 ** 17)));
    },
  });
  await expect(eventsIn(new Response(endless)).next()).rejects.toBeInstanceOf(CudaSharedMemoryError);
  expect(pieces).toBeLessThan(20);
});

const number = fc
  .tuple(
    fc.constantFrom("", "-"),
    fc.bigInt({ min: 0n, max: 2n ** 70n }),
    fc.constantFrom("", ".0", ".5", ".000000000000000000001"),
    fc.constantFrom("", "e1", "E+20", "e-7", "e400"),
  )
  .map((parts) => parts.join(""));
const blank = fc.constantFrom("", " ", "\n", "\t ");
const string = fc.string({ unit: "binary", maxLength: 12 }).map((text) => JSON.stringify(text));
const { value: json } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.oneof(number, string, fc.constantFrom("null", "true", "false", '"1"', '"\\\\"', '"\\""')),
    fc.array(tie("value"), { maxLength: 4 }).map((values) => `[${values.join(", ")}]`),
    fc
      .tuple(
        blank,
        fc.uniqueArray(fc.tuple(string, tie("value")), { maxLength: 4, selector: ([key]) => key }),
      )
      .map(
        ([space, members]) =>
          `{${members.map(([key, value]) => `${space}${key}${space}:${space}${value}`).join(",")}${space}}`,
      ),
  ),
}));

test(
  "JSON is read as JSON is, but for its numbers, of which every digit is kept",
  async () => {
    await holds(
      fc.property(json, (text) => {
        const numbersAsText = parse(text, null, { parseNumber: (digits) => digits });
        expect(parseExact(text)).toEqual(numbersAsText);
      }),
      2000,
    );
  },
  timeout,
);

const region = {
  name: "r",
  kind: "cuda",
  state: "ready",
  reason: "requested",
  device_id: 0,
  device_uuid: "GPU-00000000-0000-0000-0000-000000000000",
  byte_size: 18446744073709551615n,
  offset: 0,
  allocation_byte_size: 4096,
  owner: "anonymous",
  session: null,
  protocol: "http",
  registered_at: "2026-01-01T00:00:00.000Z",
  last_used_at: null,
  lease_seconds: 1.5,
  lease_expires_at: "2026-01-01T00:00:01.500Z",
  pins: 0,
  generation: 7,
  fingerprint: "0123456789abcdef",
  labels: { __proto__: null, a: "b" },
  exporter: { pid: 1, start_time: 2n ** 64n - 1n, boot_id: "b", pid_namespace: 3 },
  verified: true,
};
const answers = [
  { decode: (text: string) => [decodeRegion(text)], text: stringify(region) ?? "" },
  { decode: decodeStatuses, text: '[{"name":"r","device_id":0,"byte_size":18446744073709551615}]' },
];

test(
  "an answer that something in between has spoiled is refused, or read as regions whose numbers are numbers",
  async () => {
    await holds(
      fc.property(fc.constantFrom(...answers), mutated, ({ decode, text }, mutate) => {
        const spoiled = mutate(Buffer.from(text)).toString();
        let regions: readonly { readonly byteSize: unknown; readonly deviceId: unknown }[];
        try {
          regions = decode(spoiled);
        } catch (error) {
          // What `decoded` makes a malformed answer of, where a fault of the program would be told as one too.
          expect([SyntaxError, TypeError]).toContain((error as Error).constructor);
          return;
        }
        for (const { byteSize, deviceId } of regions) {
          expect([typeof byteSize, Number.isSafeInteger(deviceId)]).toEqual(["bigint", true]);
        }
      }),
      2000,
    );
  },
  timeout,
);
