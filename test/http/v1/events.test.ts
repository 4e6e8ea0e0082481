import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { exitingText, RegistryError } from "../../../src/core/errors.js";
import { FakeClock } from "../../helpers/fake-clock.js";
import { context } from "../../helpers/registry-harness.js";
import { Face } from "../face.js";
import { EventReader } from "./event-reader.js";
import { bodyOf, pathOf, put, refusalOf } from "./regions.js";

const never = new AbortController().signal;
const stop = (face: Face) => face.shutdown.abort(new RegistryError("UNAVAILABLE", exitingText));

describe("GET /v1/events", () => {
  it("begins with where the service is, then tells each change as it happens", async () => {
    await using face = await Face.start();
    await face.registerNew("before");
    using reader = await EventReader.open(face);
    expect(reader.headers).toMatchObject({
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
      "transfer-encoding": "chunked",
    });
    expect(reader.headers["x-request-id"]).toBeTruthy();
    expect(await reader.next()).toEqual({
      id: "test/1",
      event: "hello",
      data: { instance_id: "test", epoch: 1, revision: 1 },
    });
    const region = bodyOf(await put(face, "r", face.driver.allocate(64), { labels: { a: "ä" } }));
    expect(await reader.next()).toEqual({
      id: "test/2",
      event: "change",
      data: { kind: "registered", reason: "requested", revision: 2, region },
    });
    const pin = face.registry.pin("r", null, context);
    await face.send("DELETE", pathOf("r"));
    pin.release();
    const [draining, gone] = await reader.take(2);
    expect(draining?.data).toMatchObject({ kind: "draining", revision: 3, region: { state: "draining" } });
    expect(gone?.data).toMatchObject({ kind: "unregistered", revision: 4, region: { name: "r" } });
    expect(gone?.id).toBe("test/4");
  });

  it("tells what happened from a revision on", async () => {
    await using face = await Face.start();
    for (const name of ["a", "b", "c"]) await face.registerNew(name);
    for (const [query, first, revisions] of [
      ["?from_revision=0", 0, [1, 2, 3]],
      ["?from_revision=1", 0, [1, 2, 3]],
      ["?from_revision=3", 2, [3]],
      ["?from_revision=2&region=c", 1, [3]],
    ] as const) {
      using reader = await EventReader.open(face, query);
      const [hello, ...changes] = await reader.take(1 + revisions.length);
      expect([query, hello?.id, hello?.data.revision]).toEqual([query, `test/${first}`, 3]);
      expect([query, changes.map(({ data }) => data.revision)]).toEqual([query, revisions]);
    }
  });

  it("tells of one region alone, if asked", async () => {
    await using face = await Face.start();
    using reader = await EventReader.open(face, `?region=${encodeURIComponent("a/b &")}`);
    await reader.next();
    await face.registerNew("other");
    await face.registerNew("a/b &");
    expect((await reader.next())?.data).toMatchObject({ revision: 2, region: { name: "a/b &" } });
  });

  it("shows nobody's regions to others where access is for owners", async () => {
    await using face = await Face.start({
      registry: { policy: { access: "owner", unregisterAll: "all" } },
    });
    using reader = await EventReader.open(face);
    await reader.next();
    const request = { handle: face.driver.allocate(64).handle, deviceId: 0n, byteSize: 64n };
    await face.registry.register({ ...request, name: "alice's" }, { ...context, owner: "alice" });
    await face.registry.register({ ...request, name: "mine" }, context);
    expect((await reader.next())?.data).toMatchObject({ revision: 2, region: { name: "mine" } });
  });

  it.each([
    ["?from_revision=3", "OUT_OF_RANGE", /^from_revision 3 is yet to come: the revision is 1/],
    ["?from_revision=-1", "INVALID_ARGUMENT", /^'from_revision' must be a whole number/],
    ["?from=1", "INVALID_ARGUMENT", /^unknown query parameter; expected are from_revision, region$/],
    ["?region=a%00", "INVALID_ARGUMENT", /^the region name has a control character$/],
    ["?region=a&region=b", "INVALID_ARGUMENT", /^'region' must be given at most once$/],
  ])("refuses %s as any other call", async (query, code, text) => {
    await using face = await Face.start();
    await face.registerNew("r");
    const answer = await face.get(`/v1/events${query}`);
    expect(refusalOf(answer)).toEqual([400, code, expect.stringMatching(text)]);
    expect(answer.headers["content-type"]).toBe("application/json");
  });

  it("is served over HTTP/1.0, which knows no chunks", async () => {
    await using face = await Face.start();
    const connection = await face.open();
    connection.send("GET /v1/events HTTP/1.0\r\n\r\n");
    expect(await connection.until(/"revision":0\}\n\n/)).toMatch(
      /^HTTP\/1\.1 200 OK.*\r\n\r\nid: test\/0\n/s,
    );
    stop(face);
    expect(await connection.untilClosed()).toMatch(/^event: error\n.*\n\n$/s);
  });
});

describe("a reader that comes back", () => {
  const back = (face: Face, id: string, query = "") => EventReader.open(face, query, { "last-event-id": id });

  it("goes on after the last event that it got, whatever its address says", async () => {
    await using face = await Face.start();
    for (const name of ["a", "b", "c"]) await face.registerNew(name);
    using reader = await back(face, "test/1", "?from_revision=1");
    const [hello, ...changes] = await reader.take(3);
    expect([hello?.event, hello?.id]).toEqual(["hello", "test/1"]);
    expect(changes.map(({ id }) => id)).toEqual(["test/2", "test/3"]);
    using current = await back(face, "test/3");
    expect((await current.next())?.id).toBe("test/3");
    await face.registerNew("d");
    expect((await current.next())?.id).toBe("test/4");
  });

  it("is told that the service was restarted, and goes on from there", async () => {
    await using face = await Face.start();
    for (const name of ["a", "b"]) await face.registerNew(name);
    using reader = await back(face, "earlier/1", "?from_revision=1");
    expect(await reader.take(2)).toEqual([
      expect.objectContaining({ event: "hello", id: "test/2" }),
      { id: "test/2", event: "gap", data: { from: 1, to: 2, restarted: true } },
    ]);
    await face.registerNew("c");
    expect(await reader.next()).toMatchObject({ event: "change", id: "test/3" });
  });

  it("is told of the changes that are no longer known", async () => {
    await using face = await Face.start({ registry: { revision: 40n } });
    using reader = await back(face, "test/7");
    expect(await reader.take(2)).toEqual([
      expect.objectContaining({ event: "hello", id: "test/7" }),
      { id: "test/40", event: "gap", data: { from: 8, to: 40, restarted: false } },
    ]);
    await face.registerNew("a");
    expect(await reader.next()).toMatchObject({ event: "change", id: "test/41" });
  });

  it.each(["x", "test/", "/1", "test/-1", "test/1.0", "test/99999999999999999999"])(
    "with the id %j is refused",
    async (id) => {
      await using face = await Face.start();
      const answer = await face.send("GET", "/v1/events", { headers: { "last-event-id": id } });
      expect(refusalOf(answer)).toEqual([
        400,
        "INVALID_ARGUMENT",
        "Last-Event-ID is none of this service's; send the id of the last event, or leave it out",
      ]);
    },
  );

  it("from the future is refused, and an empty id says nothing", async () => {
    await using face = await Face.start();
    const answer = await face.send("GET", "/v1/events", { headers: { "last-event-id": "test/1" } });
    expect(refusalOf(answer).slice(0, 2)).toEqual([400, "OUT_OF_RANGE"]);
    using reader = await back(face, "");
    expect((await reader.next())?.id).toBe("test/0");
  });
});

describe("a quiet stream", () => {
  it("says every 15 seconds that it is alive, and nothing while it is not quiet", async () => {
    const clock = new FakeClock();
    await using face = await Face.start({ clock });
    using reader = await EventReader.open(face);
    await reader.next();
    for (let i = 0; i < 3; i++) {
      while (clock.pending === 0) await face.get("/v2/health/live");
      clock.advance(15_000);
      expect(await reader.next()).toEqual({ id: null, event: "", data: null });
    }
    while (clock.pending === 0) await face.get("/v2/health/live");
    clock.advance(14_999);
    await face.registerNew("r");
    expect((await reader.next())?.event).toBe("change");
    while (clock.pending === 0) await face.get("/v2/health/live");
    clock.advance(14_999);
    await face.registerNew("s");
    expect((await reader.next())?.event).toBe("change");
  });
});

describe("the end of a stream", () => {
  it("comes at once when the service stops, and says why", async () => {
    await using face = await Face.start();
    const readers = await Promise.all(Array.from({ length: 20 }, () => EventReader.open(face)));
    for (const reader of readers) await reader.next();
    stop(face);
    await face.server.close(never);
    for (const reader of readers) {
      expect(await reader.next()).toEqual({
        id: null,
        event: "error",
        data: { code: "UNAVAILABLE", error: exitingText },
      });
      expect(await reader.next()).toBeNull();
    }
    expect(face.faults).toEqual([]);
  });

  it("leaves nothing behind when the reader leaves", async () => {
    const clock = new FakeClock();
    await using face = await Face.start({ clock });
    const listeners = () => getEventListeners(face.shutdown.signal, "abort").length;
    const before = listeners();
    for (let round = 0; round < 3; round++) {
      const readers = await Promise.all(Array.from({ length: 100 }, () => EventReader.open(face)));
      for (const reader of readers) await reader.next();
      while (clock.pending < 100) await face.get("/v2/health/live");
      await face.registerNew(`r${round}`);
      for (const reader of readers) expect((await reader.next())?.data.region.name).toBe(`r${round}`);
      for (const reader of readers) reader[Symbol.dispose]();
      while (clock.pending > 0 || listeners() > before) await face.get("/v2/health/live");
    }
    expect(face.faults).toEqual([]);
  });

  it("frees the connection for the next request where it was the stream that ended", async () => {
    await using face = await Face.start();
    const connection = await face.open();
    connection.send(
      "HEAD /v1/events HTTP/1.1\r\n\r\nGET /v2/health/live HTTP/1.1\r\nConnection: close\r\n\r\n",
    );
    expect((await connection.untilClosed()).match(/HTTP\/1\.1 200/g)).toHaveLength(2);
  });

  it("tells a fault of ours as one, its cause to the log alone", async () => {
    await using face = await Face.start();
    face.registry.watch = async function* () {
      yield { kind: "start", revision: 0n };
      throw new Error("the cause");
    };
    using reader = await EventReader.open(face);
    const [, error] = await reader.take(2);
    expect(error?.data).toEqual({
      code: "INTERNAL",
      error: "internal error; the cause is in the service's log",
    });
    expect(await reader.next()).toBeNull();
    expect(face.faults).toMatchObject([{ protocol: "http", error: { message: "the cause" } }]);
  });
});
