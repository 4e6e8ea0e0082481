import { describe, expect, it } from "vitest";
import { exitingText, RegistryError } from "../../../src/core/errors.js";
import { FakeClock } from "../../helpers/fake-clock.js";
import { context } from "../../helpers/registry-harness.js";
import { Face } from "../face.js";
import { type Body, bodyOf, pathOf, put, refusalOf } from "./regions.js";

const namesIn = (body: Body): string[] => body.regions.map(({ name }: Body) => name);

describe("GET /v1/regions", () => {
  it("is empty where there is none", async () => {
    await using face = await Face.start();
    expect((await face.get("/v1/regions")).text).toBe('{"regions":[],"next_page_token":"","revision":0}');
  });

  it("lists regions in full, by the bytes of their names, whichever API registered them", async () => {
    await using face = await Face.start();
    for (const name of ["b", "ä", "a/b", "B"]) await put(face, name, face.driver.allocate(64));
    await face.registerNew("a");
    const body = bodyOf(await face.get("/v1/regions"));
    expect(namesIn(body)).toEqual(["B", "a", "a/b", "b", "ä"]);
    expect(body.regions[1]).toEqual(bodyOf(await face.get(pathOf("a"))));
    expect(body.revision).toBe(5);
  });

  it("lists page by page", async () => {
    await using face = await Face.start();
    const all = Array.from({ length: 7 }, (_, i) => `r${i}`);
    for (const name of all) await face.registerNew(name);
    const seen: string[] = [];
    let token = "";
    do {
      const page = bodyOf(await face.get(`/v1/regions?page_size=3&page_token=${token}`));
      expect(page.regions.length).toBeLessThanOrEqual(3);
      seen.push(...namesIn(page));
      token = page.next_page_token;
    } while (token !== "");
    expect(seen).toEqual(all);
  });

  it("filters by owner, device, state and label", async () => {
    await using face = await Face.start();
    await put(face, "one", face.driver.allocate(64, 1), { labels: { job: "train 1" } });
    await put(face, "two", face.driver.allocate(64), { labels: { job: "serve+1" } });
    const { uuid } = (await face.driver.devices())[1] ?? {};
    using _ = face.registry.pin("two", null, context);
    await face.send("DELETE", pathOf("two"));
    for (const [query, names] of [
      ["owner=anonymous", ["one", "two"]],
      ["owner=alice", []],
      ["owner=&device=&label_prefix=", ["one", "two"]],
      ["device=1", ["one"]],
      [`device=${uuid}`, ["one"]],
      ["device=2", []],
      ["state=ready", ["one"]],
      ["state=draining", ["two"]],
      ["state=close_failed", []],
      ["label_prefix=job=", ["one", "two"]],
      ["label_prefix=job%3Dtrain+1", ["one"]],
      ["label_prefix=job=serve%2B", ["two"]],
      ["device=1&state=draining", []],
    ] as const) {
      expect([query, namesIn(bodyOf(await face.get(`/v1/regions?${query}`)))]).toEqual([query, names]);
    }
  });

  it.each([
    ["page_size=0", "page_size must be from 1 to 1000, got 0"],
    ["page_size=1001", "page_size must be from 1 to 1000, got 1001"],
    ["page_size=", "'page_size' must be a whole number from 0 to 18446744073709551615"],
    ["page_size=-1", "'page_size' must be a whole number from 0 to 18446744073709551615"],
    ["page_token=%3F", /^page_token is none of this service's/],
    ["state=gone", "'state' must be one of registering, ready, orphaned, draining, close_failed"],
    ["state=", "'state' must be one of registering, ready, orphaned, draining, close_failed"],
    [
      "label=a",
      "unknown query parameter; expected are owner, device, state, label_prefix, page_size, page_token",
    ],
    ["states=ready", "unknown query parameter 'states'; did you mean 'state'?"],
    ["owner=a&owner=a", "'owner' must be given at most once"],
  ])("refuses %s", async (query, text) => {
    await using face = await Face.start();
    const [status, code, error] = refusalOf(await face.get(`/v1/regions?${query}`));
    expect([status, code]).toEqual([400, "INVALID_ARGUMENT"]);
    expect(error).toMatch(typeof text === "string" ? new RegExp(`^${text.replace(/[?]/g, "\\?")}$`) : text);
  });
});

describe("GET /v1/regions/{name}", () => {
  it("knows no region of another name", async () => {
    await using face = await Face.start();
    expect(refusalOf(await face.get(pathOf("a/b")))).toEqual([
      404,
      "NOT_FOUND",
      "Unable to find cuda shared memory region: 'a/b'",
    ]);
  });

  it("waits until there is a ready one", async () => {
    const clock = new FakeClock();
    await using face = await Face.start({ clock });
    const waiting = face.get(`${pathOf("a")}?wait=5s`);
    while (clock.pending === 0) await face.get("/v2/health/live");
    await face.registerNew("b");
    await face.registerNew("a");
    expect(bodyOf(await waiting)).toMatchObject({ name: "a", state: "ready" });
    expect(bodyOf(await face.get(`${pathOf("a")}?wait=0s`))).toMatchObject({ name: "a" });
    expect(clock.pending).toBe(0);
  });

  it("says that it waited in vain", async () => {
    const clock = new FakeClock();
    await using face = await Face.start({ clock });
    const waiting = face.get(`${pathOf("a")}?wait=1500ms`);
    while (clock.pending === 0) await face.get("/v2/health/live");
    clock.advance(1500);
    expect(refusalOf(await waiting)).toEqual([
      504,
      "DEADLINE_EXCEEDED",
      "shared memory region 'a' did not become ready in the time given",
    ]);
  });

  it.each([
    ["wait=5", "'wait' must be a duration such as 5s, 1500ms or 2m"],
    ["wait=301s", "a wait lasts 0 to 300 seconds, got 301"],
    ["wait=6m", "a wait lasts 0 to 300 seconds, got 360"],
    ["wait=1s&wait=1s", "'wait' must be given at most once"],
    ["waits=1s", "unknown query parameter 'waits'; did you mean 'wait'?"],
  ])("refuses ?%s", async (query, text) => {
    await using face = await Face.start();
    await face.registerNew("a");
    expect(refusalOf(await face.get(`${pathOf("a")}?${query}`))).toEqual([400, "INVALID_ARGUMENT", text]);
  });

  it("ends its wait when the client leaves, and when the service stops", async () => {
    const clock = new FakeClock();
    await using face = await Face.start({ clock });
    const connection = await face.open();
    connection.send(`GET ${pathOf("a")}?wait=5m HTTP/1.1\r\n\r\n`);
    while (clock.pending === 0) await face.get("/v2/health/live");
    connection.socket.destroy();
    while (clock.pending > 0) await face.get("/v2/health/live");
    const waiting = face.get(`${pathOf("a")}?wait=5m`);
    while (clock.pending === 0) await face.get("/v2/health/live");
    face.shutdown.abort(new RegistryError("UNAVAILABLE", exitingText));
    expect(refusalOf(await waiting)).toEqual([503, "UNAVAILABLE", exitingText]);
    expect([clock.pending, face.faults]).toEqual([0, []]);
  });
});
