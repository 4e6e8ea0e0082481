import { type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import { told } from "../../helpers/secrets.js";
import { isDescribedEvent } from "../described-answer.js";
import type { Face } from "../face.js";

/** One block of a stream of events: an event, or a comment, whose event is empty. */
export interface ReadEvent {
  readonly id: string | null;
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: it has as many shapes as there are events.
  readonly data: any;
}

/** A client of GET /v1/events that reads as it is told to. */
export class EventReader implements Disposable {
  readonly headers: IncomingHttpHeaders;
  readonly #incoming: IncomingMessage;
  readonly #blocks: AsyncIterator<string, void>;

  private constructor(incoming: IncomingMessage) {
    this.headers = incoming.headers;
    this.#incoming = incoming;
    this.#blocks = blocksOf(incoming);
  }

  /** Rejects with what is answered other than events. */
  static open(face: Face, query = "", headers: Record<string, string> = {}): Promise<EventReader> {
    return new Promise((resolve, reject) => {
      const path = `/v1/events${query}`;
      const outgoing = request({ host: "127.0.0.1", port: face.port, path, headers, agent: false });
      outgoing.on("error", reject);
      outgoing.on("response", (incoming) => {
        incoming.setEncoding("utf8");
        resolve(new EventReader(incoming));
      });
      outgoing.end();
    });
  }

  /** The next event; null at the end of the stream. Rejects if it breaks. */
  async next(): Promise<ReadEvent | null> {
    const { done, value } = await this.#blocks.next();
    if (done === true) return null;
    told(value);
    const fields = new Map(value.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line]));
    const field = (name: string) => fields.get(name)?.slice(name.length + 2) ?? null;
    const event = field("event") ?? "";
    const data = JSON.parse(field("data") ?? "null");
    if (event !== "" && !isDescribedEvent(event, data)) {
      throw new Error(`not in the OpenAPI document: ${value}`);
    }
    return { id: field("id"), event, data };
  }

  /** The next events, as many as are wanted. */
  async take(count: number): Promise<ReadEvent[]> {
    const events: ReadEvent[] = [];
    while (events.length < count) {
      const event = await this.next();
      if (event === null) throw new Error(`ended after ${events.length} of ${count} events`);
      events.push(event);
    }
    return events;
  }

  /** Leaves. */
  [Symbol.dispose](): void {
    this.#incoming.destroy();
  }
}

async function* blocksOf(incoming: IncomingMessage): AsyncGenerator<string, void> {
  let rest = "";
  for await (const piece of incoming) {
    const blocks = (rest + piece).split("\n\n");
    rest = blocks.pop() ?? "";
    yield* blocks;
  }
  if (rest !== "") throw new Error(`ended within an event: ${rest}`);
}
