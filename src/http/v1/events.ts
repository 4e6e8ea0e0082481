import type { WatchEvent, WatchedChange } from "../../core/change-history.js";
import { type Clock, systemClock } from "../../core/clock.js";
import { internalErrorText, RegistryError } from "../../core/errors.js";
import type { FaceContext } from "../../core/face-context.js";
import { assertRegionName } from "../../core/region-name.js";
import { callContext } from "../call-context.js";
import type { Exchange } from "../exchange.js";
import {
  changeText,
  type EventId,
  errorText,
  eventsContentType,
  gapText,
  helloText,
  keepAliveText,
} from "./event-text.js";
import { parseLastEventId } from "./last-event-id.js";
import { readQuery, textIn, uint64In } from "./query.js";
import { pause, withPauses } from "./with-pauses.js";

/** Proxies give up connections on which nothing comes for a minute or so. */
const keepAliveMs = 15_000;

/** How a client's connection is cut that takes nothing. */
const patience = { patienceMs: 30_000, exitPatienceMs: 1000 } as const;

// A proxy that gathers an answer before it hands it on would hold events back.
const headers = { "cache-control": "no-store", "x-accel-buffering": "no" };

/** Where a reader begins, and whether what it knows is of another run of the service. */
interface Start {
  readonly fromRevision: bigint | undefined;
  readonly isRestarted: boolean;
}

/** Changes as server-sent events. One event at a time is held for a reader, whatever its pace. */
export function createEvents(context: FaceContext, clock: Clock = systemClock) {
  const { registry, info, shutdown } = context;
  const { instanceId, epoch } = info;
  let latest: { readonly change: WatchedChange; readonly text: string } | undefined;

  /** Readers want the same change at about the same time: it is written once for all of them. */
  function textOf(change: WatchedChange): string {
    if (latest?.change !== change) latest = { change, text: changeText(instanceId, change) };
    return latest.text;
  }

  function startOf(last: EventId | null, fromRevision: bigint | undefined): Start {
    if (last === null) return { fromRevision, isRestarted: false };
    if (last.instanceId !== instanceId) return { fromRevision: undefined, isRestarted: true };
    return { fromRevision: last.revision + 1n, isRestarted: false };
  }

  function* textsOf(event: WatchEvent, { fromRevision, isRestarted }: Start): Generator<string> {
    switch (event.kind) {
      case "start": {
        const { revision } = event;
        // The id is of what the reader knows: one who leaves before the first change begins there again.
        const known = fromRevision === undefined ? revision : fromRevision === 0n ? 0n : fromRevision - 1n;
        yield helloText({ instanceId, revision: known }, epoch, revision);
        if (isRestarted) yield gapText(instanceId, { from: 1n, to: revision, restarted: true });
        break;
      }
      case "gap":
        yield gapText(instanceId, { from: event.from, to: event.to, restarted: false });
        break;
      case "change":
        yield textOf(event.change);
    }
  }

  async function* texts(exchange: Exchange, start: Start, name: string | undefined): AsyncGenerator<string> {
    const call = callContext(exchange, context);
    const events = registry.watch({ fromRevision: start.fromRevision, name }, call)[Symbol.asyncIterator]();
    let hasBegun = false;
    try {
      for await (const event of withPauses(events, keepAliveMs, clock)) {
        hasBegun = true;
        if (event === pause) yield keepAliveText;
        else yield* textsOf(event, start);
      }
    } catch (error) {
      // Before the first event it can still be answered as any other.
      if (!hasBegun) throw error;
      yield errorText(toldError(exchange, error));
    }
  }

  function toldError(exchange: Exchange, error: unknown): RegistryError {
    if (error instanceof RegistryError) return error;
    context.reportFault({ requestId: exchange.requestId ?? "", protocol: "http", error });
    return new RegistryError("INTERNAL", internalErrorText);
  }

  return async (exchange: Exchange): Promise<Response> => {
    const query = readQuery(exchange.query, ["from_revision", "region"]);
    const name = textIn(query, "region");
    if (name !== undefined) assertRegionName(name);
    const last = parseLastEventId(exchange.header("last-event-id"));
    const start = startOf(last, uint64In(query, "from_revision"));
    return exchange.streamText(texts(exchange, start, name), {
      ...patience,
      contentType: eventsContentType,
      headers,
      clock,
      shutdown,
    });
  };
}
