import type { Connection } from "./connection.js";
import {
  CudaSharedMemoryError,
  EventsEndedError,
  errorTold,
  invalidArgument,
  malformedAnswer,
  refusalIn,
} from "./errors.js";
import { eventsIn, type StreamEvent } from "./event-stream.js";
import { query } from "./query.js";
import { membersOf, parseExact, text, whole } from "./read-json.js";
import { type ChangeReason, type Region, readRegion } from "./region.js";
import { digitsOf } from "./write-json.js";

export type ChangeKind = "registered" | "adopted" | "orphaned" | "draining" | "unregistered" | "close_failed";

/** What came first: which run of the service answers, and the number of its last change. */
export interface HelloEvent {
  readonly type: "hello";
  /** Where a watch can go on after this event, as its `after`. */
  readonly id: string;
  readonly instanceId: string;
  readonly epoch: bigint;
  readonly revision: bigint;
}

export interface ChangeEvent {
  readonly type: "change";
  readonly id: string;
  readonly kind: ChangeKind;
  readonly reason: ChangeReason;
  readonly revision: bigint;
  /** As it is after the change. */
  readonly region: Region;
}

/** Changes that are no longer known: list the regions anew. Those after them follow. */
export interface GapEvent {
  readonly type: "gap";
  readonly id: string;
  readonly fromRevision: bigint;
  readonly toRevision: bigint;
  /** Whether the service was restarted since the event to go on after. */
  readonly isRestart: boolean;
}

export type RegistryEvent = HelloEvent | ChangeEvent | GapEvent;

export interface EventsOptions {
  /** The first revision wanted; changes from now on if left out. */
  readonly fromRevision?: bigint | number | undefined;
  /** The id of the last event seen, to go on after it, also across a restart of the service. */
  readonly after?: string | undefined;
  /** Only changes of this region. */
  readonly region?: string | undefined;
  /** Ends the watch: CANCELLED. */
  readonly signal?: AbortSignal | undefined;
}

/** See the client's `events`. */
export async function* watchEvents(
  connection: Connection,
  options: EventsOptions,
): AsyncGenerator<RegistryEvent, never> {
  const { after, signal } = options;
  let lastEventId: string | null = after ?? null;
  try {
    const call = { method: "GET", path: pathOf(options), headers: headersOf(after), signal } as const;
    for await (const event of connection.stream(call, read)) {
      lastEventId = event.id;
      yield event;
    }
  } catch (error) {
    throw error instanceof CudaSharedMemoryError ? new EventsEndedError(error, lastEventId) : error;
  }
  const ended = new CudaSharedMemoryError("UNAVAILABLE", "the service ended the events without a word");
  throw new EventsEndedError(ended, lastEventId);
}

function pathOf({ fromRevision, region }: EventsOptions): string {
  const from = fromRevision === undefined ? undefined : digitsOf("fromRevision", fromRevision);
  return `/v1/events${query({ from_revision: from, region })}`;
}

function headersOf(after: string | undefined): Readonly<Record<string, string>> {
  if (after === undefined) return { accept: "text/event-stream" };
  if (!/^[\x21-\x7e]+$/.test(after)) throw invalidArgument("after is no id of an event");
  return { accept: "text/event-stream", "last-event-id": after };
}

async function* read(answer: Response): AsyncGenerator<RegistryEvent, void> {
  if (answer.status !== 200) throw refusalIn(answer, await answer.text());
  if (!answer.headers.get("content-type")?.startsWith("text/event-stream")) {
    await answer.body?.cancel();
    throw malformedAnswer(answer);
  }
  for await (const event of eventsIn(answer)) {
    const decoded = decode(answer, event);
    if (decoded !== null) yield decoded;
  }
}

/** Null for an event of a kind that is not known yet. */
function decode(answer: Response, { type, data, id }: StreamEvent): RegistryEvent | null {
  try {
    const members = membersOf(parseExact(data));
    switch (type) {
      case "hello":
        return {
          type,
          id,
          instanceId: text(members, "instance_id"),
          epoch: whole(members, "epoch"),
          revision: whole(members, "revision"),
        };
      case "change":
        return {
          type,
          id,
          kind: text(members, "kind") as ChangeKind,
          reason: text(members, "reason") as ChangeReason,
          revision: whole(members, "revision"),
          region: readRegion(members.region),
        };
      case "gap":
        return {
          type,
          id,
          fromRevision: whole(members, "from"),
          toRevision: whole(members, "to"),
          isRestart: members.restarted === true,
        };
      case "error":
        throw errorTold(answer, text(members, "code"), text(members, "error"));
      default:
        return null;
    }
  } catch (cause) {
    throw cause instanceof CudaSharedMemoryError ? cause : malformedAnswer(answer, cause);
  }
}
