import { getEventListeners } from "node:events";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { ExporterProcess } from "../../src/cli/exporter-process.js";
import type { ServiceProcess } from "../../src/cli/service-process.js";
import {
  type CudaSharedMemoryClient,
  createCudaSharedMemoryClient,
  EventsEndedError,
  type FullRegistration,
  type RegistryEvent,
} from "../../src/client/index.js";
import { startExporter, startService } from "../helpers/cudashm.js";
import { createDeferred } from "../helpers/deferred.js";
import { standIn } from "./stand-in.js";

let exporter: ExporterProcess;
let memory: FullRegistration;
beforeAll(async () => {
  exporter = await startExporter();
  memory = { rawHandle: exporter.body.raw_handle.b64, deviceId: 0, byteSize: 4096 };
});
afterAll(async () => {
  expect(await exporter.end()).toBe(0);
});

async function take(events: AsyncIterable<RegistryEvent>, count: number): Promise<RegistryEvent[]> {
  const seen: RegistryEvent[] = [];
  for await (const event of events) if (seen.push(event) === count) break;
  return seen;
}

/** What ends a watch. */
async function endOf(events: AsyncIterable<RegistryEvent>): Promise<EventsEndedError> {
  const error: unknown = await take(events, Number.POSITIVE_INFINITY).catch((error) => error);
  expect(error).toBeInstanceOf(EventsEndedError);
  return error as EventsEndedError;
}

describe("against the service", () => {
  let service: ServiceProcess;
  let client: CudaSharedMemoryClient;
  beforeAll(async () => {
    service = await startService();
    client = createCudaSharedMemoryClient({ baseUrl: service.httpUrl });
  });
  afterEach(() => client.unregisterAll());
  afterAll(async () => {
    expect(await service.stop()).toEqual({ code: 0, signal: null });
  });

  test("tells every change from now on, with the region as it is after it", async () => {
    const events = client.events();
    const { instanceId, epoch, revision } = await client.server();
    const hello = (await events.next()).value;
    expect(hello).toEqual({ type: "hello", id: `${instanceId}/${revision}`, instanceId, epoch, revision });
    const region = await client.registerRegion("r", { ...memory, labels: { a: "b" } });
    await client.unregisterRegion("r");
    expect(await take(events, 2)).toEqual([
      {
        type: "change",
        id: `${instanceId}/${revision + 1n}`,
        kind: "registered",
        reason: "requested",
        revision: revision + 1n,
        region,
      },
      expect.objectContaining({
        kind: "unregistered",
        reason: "requested",
        revision: revision + 2n,
        region: expect.objectContaining({ name: "r", generation: region.generation }),
      }),
    ]);
  });

  test("tells what was before, of one region alone if that is wanted", async () => {
    const { revision } = await client.server();
    for (const name of ["a", "b", "a/b"]) await client.registerRegion(name, memory);
    const [, ...all] = await take(client.events({ fromRevision: revision + 1n }), 4);
    expect(all.map((event) => event.type === "change" && event.region.name)).toEqual(["a", "b", "a/b"]);
    const [, only] = await take(client.events({ fromRevision: 1, region: "a/b" }), 2);
    expect(only).toEqual(all[2]);
  });

  test("goes on after the last event of the watch before, and misses nothing", async () => {
    const abort = new AbortController();
    const first = client.events({ signal: abort.signal });
    await first.next();
    await client.registerRegion("r", memory);
    const seen = await first.next();
    abort.abort();
    const error = await endOf(first);
    expect(error).toMatchObject({ code: "CANCELLED", lastEventId: seen.value.id });
    await client.unregisterRegion("r");
    const [hello, missed] = await take(client.events({ after: error.lastEventId ?? undefined }), 2);
    expect(hello?.type).toBe("hello");
    expect(missed).toMatchObject({ kind: "unregistered", region: { name: "r" } });
  });

  test("refuses a revision yet to come, and tells where it would have gone on", async () => {
    const { revision } = await client.server();
    const error = await endOf(client.events({ fromRevision: revision + 2n }));
    expect(error).toMatchObject({ code: "OUT_OF_RANGE", lastEventId: null });
  });

  test.each(["", "a b", "a\nb", "\u00e9"])(
    "%j is no id to go on after, and nothing is sent",
    async (after) => {
      const offline = createCudaSharedMemoryClient({
        baseUrl: service.httpUrl,
        fetch: () => expect.unreachable("a request was sent"),
      });
      expect(await endOf(offline.events({ after }))).toMatchObject({ code: "INVALID_ARGUMENT" });
    },
  );

  test("a watch that is left, or whose signal is aborted, leaves nothing behind", async () => {
    const signals = [new AbortController(), new AbortController()] as const;
    const own = createCudaSharedMemoryClient({ baseUrl: service.httpUrl, signal: signals[0].signal });
    await take(own.events({ signal: signals[1].signal }), 1);
    const watch = own.events({ signal: signals[1].signal });
    await watch.next();
    const end = endOf(watch);
    signals[1].abort();
    expect(await end).toMatchObject({ code: "CANCELLED" });
    for (const { signal } of signals) expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});

test("a restart of the service is UNAVAILABLE, and then a gap that says so", async () => {
  const first = await startService();
  const before = createCudaSharedMemoryClient({ baseUrl: first.httpUrl });
  const watch = before.events();
  await watch.next();
  await before.registerRegion("r", memory);
  const end = endOf(watch);
  expect(await first.stop()).toEqual({ code: 0, signal: null });
  const { code, lastEventId } = await end;
  expect(code).toBe("UNAVAILABLE");
  await using second = await startService();
  const after = createCudaSharedMemoryClient({ baseUrl: second.httpUrl });
  await after.registerRegion("s", memory);
  const [hello, gap] = await take(after.events({ after: lastEventId ?? undefined }), 2);
  expect(hello).toMatchObject({ type: "hello", instanceId: (await after.server()).instanceId });
  expect(gap).toMatchObject({ type: "gap", isRestart: true, fromRevision: 1n, toRevision: 1n });
  expect(await second.stop()).toEqual({ code: 0, signal: null });
});

describe("an answer that is not as it should be", () => {
  const hello = 'id: i/1\nevent: hello\ndata: {"instance_id":"i","epoch":1,"revision":1}\n\n';
  const streaming = { "content-type": "text/event-stream", "x-request-id": "q" };

  test.each([
    ["the end without a word", "", "UNAVAILABLE"],
    [
      "an error",
      'event: error\ndata: {"code":"RESOURCE_EXHAUSTED","error":"fell behind"}\n\n',
      "RESOURCE_EXHAUSTED",
    ],
    ["an error of a kind that is not known", 'event: error\ndata: {"code":"X","error":"why"}\n\n', "UNKNOWN"],
    ["an error without its parts", "event: error\ndata: {}\n\n", "UNKNOWN"],
    ["data that is no JSON", "event: change\ndata: {\n\n", "UNKNOWN"],
    ["a change without a region", 'event: change\ndata: {"kind":"registered"}\n\n', "UNKNOWN"],
  ])("%s ends the watch, which says after what to go on", async (_what, rest, code) => {
    await using server = await standIn((_request, answer) =>
      answer.writeHead(200, streaming).end(hello + rest),
    );
    expect(await endOf(server.client.events())).toMatchObject({ code, lastEventId: "i/1" });
  });

  test("the service's own error keeps its text and the request's id", async () => {
    const error = 'event: error\ndata: {"code":"RESOURCE_EXHAUSTED","error":"fell behind"}\n\n';
    await using server = await standIn((_request, answer) => answer.writeHead(200, streaming).end(error));
    expect(await endOf(server.client.events())).toMatchObject({
      message: "fell behind",
      httpStatus: 200,
      requestId: "q",
      lastEventId: null,
    });
  });

  test("events of a kind that is not known yet are left out", async () => {
    const other = "id: i/2\nevent: other\ndata: {}\n\ndata: {}\n\n";
    await using server = await standIn((_request, answer) =>
      answer.writeHead(200, streaming).end(other + hello),
    );
    const [first] = await take(server.client.events(), 1);
    expect(first).toEqual({ type: "hello", id: "i/1", instanceId: "i", epoch: 1n, revision: 1n });
  });

  test("a page is no stream of events", async () => {
    await using proxy = await standIn((_request, answer) => {
      answer.writeHead(200, { "content-type": "text/html" }).end("<html>log in</html>");
    });
    expect(await endOf(proxy.client.events())).toMatchObject({ code: "UNKNOWN", httpStatus: 200 });
  });

  test("a refusal keeps its code", async () => {
    await using server = await standIn((_request, answer) => {
      answer.writeHead(403, { "x-error-code": "PERMISSION_DENIED" }).end('{"error":"not you"}');
    });
    expect(await endOf(server.client.events({ after: "i/7" }))).toMatchObject({
      code: "PERMISSION_DENIED",
      message: "not you",
      lastEventId: "i/7",
    });
  });

  test("a connection that breaks in the middle is UNAVAILABLE", async () => {
    await using server = await standIn((_request, answer) => {
      answer.writeHead(200, streaming).write(hello, () => answer.destroy());
    });
    expect(await endOf(server.client.events())).toMatchObject({ code: "UNAVAILABLE", lastEventId: "i/1" });
  });

  test("leaving the loop breaks the request off", async () => {
    const left = createDeferred();
    await using server = await standIn((_request, answer) => {
      answer.once("close", () => left.resolve());
      answer.writeHead(200, streaming).write(hello);
    });
    await take(server.client.events(), 1);
    await left.promise;
  });
});
