import { connect as connectHttp2 } from "node:http2";
import { expect, onTestFinished, test, vi } from "vitest";
import { WatchRequest } from "../../src/grpc/gen/cudashm/v1/registry.js";
import { context, request } from "../helpers/registry-harness.js";
import { addressOf, createTestFace, startServer, type TestFace } from "./harness.js";
import { callRaw } from "./raw-stream.js";
import { createRegistryClient } from "./registry-client.js";

async function start(options: Parameters<typeof createTestFace>[0] = {}) {
  const face = createTestFace(options);
  const server = await startServer(face);
  return { face, server, client: createRegistryClient(addressOf(server)) };
}

const changeOf = (kind: string, name: string, revision: number, rest: object = {}) =>
  expect.objectContaining({
    event: "change",
    change: expect.objectContaining({
      kind: `CHANGE_KIND_${kind}`,
      revision: String(revision),
      region: expect.objectContaining({ name }),
      ...rest,
    }),
  });

/** Registers and unregisters so often that `count` changes come of it. */
async function makeChanges({ registry, driver }: TestFace, count: number): Promise<void> {
  const { handle } = driver.allocate(64);
  for (let made = 0; made < count; made += 2) {
    await registry.register(request("busy", handle), context);
    await registry.unregister("busy", context);
  }
}

test("a watch begins with where it is and goes on with every change", async () => {
  const { face, client } = await start();
  await client.call("Register", { ...face.goodRegister, name: "before" });
  const watch = client.follow("Watch");
  expect(await watch.next()).toMatchObject({
    event: "start",
    start: { instance_id: "test", epoch: "1", revision: "1" },
  });
  await client.call("Register", face.goodRegister);
  await client.call("Unregister", { name: "r" });
  expect(await watch.next()).toEqual(changeOf("REGISTERED", "r", 2, { reason: "REASON_REQUESTED" }));
  expect(await watch.next()).toEqual(changeOf("UNREGISTERED", "r", 3));
  watch.cancel();
  expect(await watch.end).toMatchObject({ code: "CANCELLED" });
  expect(face.faults).toEqual([]);
});

test("a watch of one region hears of that alone", async () => {
  const { face, client } = await start();
  const watch = client.follow("Watch", { name: "r" });
  await watch.next();
  await client.call("Register", { ...face.goodRegister, name: "other" });
  await client.call("Register", face.goodRegister);
  expect(await watch.next()).toEqual(changeOf("REGISTERED", "r", 2));
  watch.cancel();
});

test("a watch from a revision hears what was since, and of a gap where that is no longer known", async () => {
  const { face, client } = await start();
  await makeChanges(face, 4);
  const watch = client.follow("Watch", { from_revision: "3" });
  expect((await watch.next()).start.revision).toBe("4");
  expect(await watch.next()).toEqual(changeOf("REGISTERED", "busy", 3));
  watch.cancel();
  await makeChanges(face, 8192);
  const late = client.follow("Watch", { from_revision: "0" });
  await late.next();
  expect(await late.next()).toMatchObject({ event: "gap", gap: { from_revision: "1", to_revision: "4" } });
  expect(await late.next()).toEqual(changeOf("REGISTERED", "busy", 5));
  late.cancel();
});

test.each([
  [{ from_revision: "2" }, "OUT_OF_RANGE", /^from_revision 2 is yet to come: the revision is 0/],
  [{ from_revision: "18446744073709551615" }, "OUT_OF_RANGE", /^from_revision 18446744073709551615 is/],
  [{ name: ".." }, "INVALID_ARGUMENT", /is not allowed as a region name/],
])("a watch of %j is refused", async (query, code, text) => {
  const { face, client } = await start();
  const { end } = client.follow("Watch", query);
  expect(await end).toMatchObject({ code, text: expect.stringMatching(text) });
  expect((await end).trailers.get("x-request-id")).toHaveLength(1);
  expect(face.faults).toEqual([]);
});

test("the stop of the service ends every watch at once", async () => {
  const { face, server, client } = await start();
  const watches = Array.from({ length: 10 }, () => client.follow("Watch"));
  for (const watch of watches) await watch.next();
  face.shutdown.abort();
  for (const { end } of watches) {
    expect(await end).toMatchObject({ code: "UNAVAILABLE", text: "Server exiting" });
  }
  await server.close(new AbortController().signal);
});

test("watchers who left are told nothing and kept nowhere", async () => {
  const { face, client } = await start();
  const returned = vi.fn();
  const watch = face.registry.watch.bind(face.registry);
  face.registry.watch = async function* (...args) {
    try {
      yield* watch(...args);
    } finally {
      returned();
    }
  };
  const watches = Array.from({ length: 100 }, () => client.follow("Watch"));
  for (const each of watches) await each.next();
  for (const each of watches) each.cancel();
  await expect.poll(() => returned.mock.calls.length).toBe(100);
  expect(face.faults).toEqual([]);
});

test("a watcher who does not read is cut off for having fallen behind, and costs one message until then", async () => {
  const { face, server } = await start();
  const session = connectHttp2(`http://${addressOf(server)}`, { settings: { initialWindowSize: 1024 } });
  onTestFinished(() => session.destroy());
  let taken = 0;
  const watch = face.registry.watch.bind(face.registry);
  face.registry.watch = async function* (...args) {
    for await (const event of watch(...args)) {
      taken++;
      yield event;
    }
  };
  const stream = callRaw(session, "/cudashm.v1.Registry/Watch", WatchRequest.encode({ name: "" }).finish());
  stream.pause();
  await expect.poll(() => taken).toBe(1);
  // More than fits into what the client's own library reads ahead.
  await makeChanges(face, 1000);
  const stalledAt = await stalled(() => taken);
  expect(stalledAt).toBeLessThan(1000);
  await makeChanges(face, 8192);
  expect(taken).toBe(stalledAt);
  stream.resume();
  expect(await stream.status).toMatchObject({
    code: "RESOURCE_EXHAUSTED",
    text: expect.stringMatching(/^the watch fell behind: revision \d+ is no longer known/),
  });
  expect(face.faults).toEqual([]);
});

/** The value of `read` once it no longer changes while the server answers others. */
async function stalled(read: () => number): Promise<number> {
  let last = -1;
  while (last !== read()) {
    last = read();
    for (let turns = 0; turns < 100; turns++) await new Promise<void>((resolve) => setImmediate(resolve));
  }
  return last;
}
