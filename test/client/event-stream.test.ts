import fc from "fast-check";
import { expect, test } from "vitest";
import { eventsIn, type StreamEvent } from "../../src/client/event-stream.js";

/** An answer that arrives in these pieces. */
function answerOf(pieces: readonly Uint8Array[], onCancel = () => {}): Response {
  const rest = [...pieces];
  return new Response(
    new ReadableStream<Uint8Array>({
      pull(controller) {
        const piece = rest.shift();
        if (piece === undefined) controller.close();
        else controller.enqueue(piece);
      },
      cancel: onCancel,
    }),
  );
}

async function read(...pieces: string[]): Promise<StreamEvent[]> {
  const events: StreamEvent[] = [];
  const bytes = pieces.map((piece) => new TextEncoder().encode(piece));
  for await (const event of eventsIn(answerOf(bytes))) events.push(event);
  return events;
}

test.each<[string, string, StreamEvent[]]>([
  ["an event", "id: 7\nevent: change\ndata: {}\n\n", [{ id: "7", type: "change", data: "{}" }]],
  ["one without a name", "data: a\n\n", [{ id: "", type: "message", data: "a" }]],
  ["one of several lines", "data: a\ndata\ndata:b\n\n", [{ id: "", type: "message", data: "a\n\nb" }]],
  ["comments", ": stay awake\n\ndata: a\n:\n\n", [{ id: "", type: "message", data: "a" }]],
  ["fields that it does not know", "retry: 5\nx: y\ndata: a\n\n", [{ id: "", type: "message", data: "a" }]],
  [
    "a colon in the data, and one blank before it",
    "data:  a: b\n\n",
    [{ id: "", type: "message", data: " a: b" }],
  ],
  ["a byte order mark", "\ufeffdata: a\n\n", [{ id: "", type: "message", data: "a" }]],
  ["no event without data", "id: 1\nevent: a\n\ndata: b\n\n", [{ id: "1", type: "message", data: "b" }]],
  ["no id with a NUL in it", "id: 1\nid: 2\0\ndata: b\n\n", [{ id: "1", type: "message", data: "b" }]],
  ["no event that the answer ends within", "data: a\n\ndata: b\n", [{ id: "", type: "message", data: "a" }]],
  ["nothing", "", []],
])("reads %s", async (_what, text, events) => {
  expect(await read(text)).toEqual(events);
});

test("an id holds for the events after it too, until another comes", async () => {
  const events = await read("id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n");
  expect(events.map(({ id }) => id)).toEqual(["1", "1", ""]);
});

test("reads the same events however they are cut into pieces and whatever ends their lines", async () => {
  const line = fc.constantFrom("data: caf\u00e9", "data: \u{1f600}", "event: x", "id: 1", ": c", "", "");
  const lines = fc.array(fc.tuple(line, fc.constantFrom("\n", "\r\n", "\r")), { maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(lines, fc.array(fc.nat(200), { maxLength: 8 }), async (written, cuts) => {
      const text = written.map(([content, end]) => content + end).join("");
      const bytes = new TextEncoder().encode(text);
      const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
      const pieces = places.slice(1).map((place, index) => bytes.subarray(places[index], place));
      const cut: StreamEvent[] = [];
      for await (const event of eventsIn(answerOf(pieces))) cut.push(event);
      expect(cut).toEqual(await read(text.replace(/\r\n|\r/g, "\n")));
    }),
  );
});

test.each(["data: ", ": ", "", "data: a\ndata: "])(
  "an event that begins %j and does not end is given up",
  async (start) => {
    const filler = "x".repeat(64 * 1024);
    let pieces = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        const piece = pieces++ === 0 ? start : start.startsWith("data: a") ? `${filler}\ndata: ` : filler;
        controller.enqueue(new TextEncoder().encode(piece));
      },
    });
    await expect(eventsIn(new Response(body)).next()).rejects.toMatchObject({ code: "UNKNOWN" });
    expect(pieces).toBeLessThan(40);
  },
);

test("a reader that stops lets go of the answer", async () => {
  let cancelled = 0;
  const endless = answerOf(
    Array<Uint8Array>(100).fill(new TextEncoder().encode("data: a\n\n")),
    () => cancelled++,
  );
  for await (const event of eventsIn(endless)) {
    expect(event.data).toBe("a");
    break;
  }
  expect(cancelled).toBe(1);
});
