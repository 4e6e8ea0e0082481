import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { Gate } from "../../src/core/gate.js";
import { InFlight } from "../../src/core/in-flight.js";
import { FakeClock } from "../helpers/fake-clock.js";
import { addressOf, createTestFace, portOf, startServer } from "./harness.js";
import { createRegistryClient, hold } from "./registry-client.js";

async function start(options: Parameters<typeof createTestFace>[0] = {}) {
  const clock = new FakeClock();
  const face = createTestFace({ ...options, registry: { clock } });
  const server = await startServer(face);
  return { face, clock, server, client: createRegistryClient(addressOf(server)) };
}

const names = ({ registry }: { registry: { statuses(): readonly { name: string }[] } }) =>
  registry.statuses().map(({ name }) => name);

test("a session's regions live as long as its stream, others longer", async () => {
  const { face, client } = await start();
  const session = await hold(client);
  expect(session.id).toMatch(/^[0-9a-f]{16}$/);
  expect(session.secret).toMatch(/^[0-9a-f]{32}$/);
  const good = face.goodRegister;
  const { response } = await client.call("Register", { ...good, name: "in" }, session.headers);
  expect(response).toMatchObject({ owner: `session:${session.id}`, session: session.id });
  await client.call("Register", { ...good, name: "out" });
  session.cancel();
  expect(await session.end).toMatchObject({ code: "CANCELLED" });
  await expect.poll(() => names(face)).toEqual(["out"]);
  expect(await client.call("List", {}, session.headers)).toMatchObject({ code: "UNAUTHENTICATED" });
  expect(face.faults).toEqual([]);
});

test("a stream that breaks leaves the session its grace, and another goes on with it", async () => {
  const { face, clock, client } = await start();
  const first = await hold(client, { resume_grace: { seconds: 10 } });
  await client.call("Register", face.goodRegister, first.headers);
  first.cancel();
  await expect.poll(() => clock.pending).toBe(1);
  clock.advance(9999);
  const second = await hold(client, { resume: first.secret });
  expect(second).toMatchObject({ id: first.id, secret: first.secret });
  expect(clock.pending).toBe(0);
  clock.advance(1_000_000);
  expect(names(face)).toEqual(["r"]);
  second.cancel();
  await expect.poll(() => clock.pending).toBe(1);
  clock.advance(10_000);
  await expect.poll(() => names(face)).toEqual([]);
  expect(await client.follow("Hold", { resume: first.secret }).end).toMatchObject({
    code: "UNAUTHENTICATED",
    text: "the session is unknown or has ended; open a new one, or send no cudashm-session",
  });
});

test("a stream that is resumed while it is open is taken over", async () => {
  const { face, client } = await start();
  const first = await hold(client);
  await client.call("Register", face.goodRegister, first.headers);
  const second = await hold(client, { resume: first.secret });
  expect(await first.end).toMatchObject({
    code: "FAILED_PRECONDITION",
    text: "the session was taken over by another stream",
  });
  expect(names(face)).toEqual(["r"]);
  second.cancel();
  await expect.poll(() => names(face)).toEqual([]);
});

test.each([
  [{ resume_grace: { seconds: 86_401 } }, "INVALID_ARGUMENT", /outlives its stream by 0 to 86400 seconds/],
  [{ resume_grace: { seconds: -1 } }, "INVALID_ARGUMENT", /^resume_grace must not be negative/],
  [{ resume: "0".repeat(32) }, "UNAUTHENTICATED", /^the session is unknown or has ended/],
  [{ resume: "x", resume_grace: { seconds: 1 } }, "INVALID_ARGUMENT", /leave it out to resume one/],
])("a hold of %j is refused", async (request, code, text) => {
  const { face, client } = await start();
  const { end } = client.follow("Hold", request);
  expect(await end).toMatchObject({ code, text: expect.stringMatching(text) });
  expect((await end).trailers.get("x-request-id")).toHaveLength(1);
  expect(face.faults).toEqual([]);
});

test("the stop of the service ends every hold at once", async () => {
  const { face, server, client } = await start();
  const holds = await Promise.all(Array.from({ length: 10 }, () => hold(client)));
  face.shutdown.abort();
  for (const { end } of holds) {
    expect(await end).toMatchObject({ code: "UNAVAILABLE", text: "Server exiting" });
  }
  await server.close(new AbortController().signal);
});

test("a deadline ends a hold as a client's cancel does", async () => {
  const { face, client } = await start();
  const stream = client.follow("Hold", {}, {}, { deadline: Date.now() + 300 });
  const { secret } = await stream.next();
  await client.call("Register", face.goodRegister, { "cudashm-session": secret });
  expect(await stream.end).toMatchObject({ code: "DEADLINE_EXCEEDED" });
  await expect.poll(() => names(face)).toEqual([]);
});

test("a thousand sessions are held at once, and each takes its own region along", async () => {
  const { face, client } = await start();
  const good = face.goodRegister;
  const holds = await Promise.all(
    Array.from({ length: 1000 }, async (_, index) => {
      const session = await hold(client);
      await client.call("Register", { ...good, name: `r${index}` }, session.headers);
      return session;
    }),
  );
  expect(names(face)).toHaveLength(1000);
  expect(new Set(holds.map(({ secret }) => secret)).size).toBe(1000);
  for (const { cancel } of holds.slice(1)) cancel();
  await expect.poll(() => names(face), { timeout: 10_000 }).toEqual(["r0"]);
  holds[0]?.cancel();
  await expect.poll(() => face.driver.openMappings).toBe(0);
});

test("a hold is let in as a request in flight and is none from then on", async () => {
  const { face, client } = await start({ gate: new Gate({ inFlight: new InFlight(1) }) });
  const holds = [await hold(client), await hold(client), await hold(client)];
  expect(await client.call("List")).toMatchObject({ code: "OK" });
  const watching = client.follow("Watch");
  await watching.next();
  expect(await client.follow("Hold").end).toMatchObject({ code: "RESOURCE_EXHAUSTED" });
  watching.cancel();
  for (const { cancel } of holds) cancel();
  await expect.poll(async () => (await client.call("List")).code).toBe("OK");
  expect(await client.call("Register", face.goodRegister)).toMatchObject({ code: "OK" });
});

test("a peer that no longer answers loses its session, and one that does keeps it", async () => {
  const clock = new FakeClock();
  const face = createTestFace({ registry: { clock } });
  // As long as this process, where both ends live, may be kept from running without being taken for dead.
  const server = await startServer(face, { keepaliveTimeMs: 50, keepaliveTimeoutMs: 5000 });
  const kept = createRegistryClient(addressOf(server));
  const stays = await hold(kept);
  await kept.call("Register", { ...face.goodRegister, name: "stays" }, stays.headers);

  // All that a gRPC client says to hold a session; it answers no ping.
  const dead = connect(portOf(server), "127.0.0.1");
  onTestFinished(() => void dead.destroy());
  dead.resume();
  dead.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u0004\0\0\0\0\0", "latin1");
  const opened = face.registry.sessions.open.bind(face.registry.sessions);
  const ids: string[] = [];
  face.registry.sessions.open = (options) => {
    const session = opened(options);
    ids.push(session.session.id);
    return session;
  };
  dead.write(holdRequest());
  await expect.poll(() => ids, { timeout: 20_000 }).toHaveLength(1);
  const isOpen = () => face.registry.sessions.isOpen(ids[0] ?? "");
  await expect.poll(isOpen, { timeout: 20_000 }).toBe(false);
  expect(names(face)).toEqual(["stays"]);
  expect(face.registry.sessions.isOpen(stays.id)).toBe(true);
});

/** Frames of HTTP/2 that call Hold with an empty message. */
function holdRequest(): Buffer {
  const literal = (name: string, value: string) =>
    Buffer.concat([
      Buffer.of(0, name.length),
      Buffer.from(name),
      Buffer.of(value.length),
      Buffer.from(value),
    ]);
  const headers = Buffer.concat([
    literal(":method", "POST"),
    literal(":scheme", "http"),
    literal(":path", "/cudashm.v1.Registry/Hold"),
    literal(":authority", "x"),
    literal("content-type", "application/grpc"),
    literal("te", "trailers"),
  ]);
  const frame = (type: number, flags: number, payload: Buffer) =>
    Buffer.concat([
      Buffer.of(0, payload.length >> 8, payload.length & 0xff, type, flags, 0, 0, 0, 1),
      payload,
    ]);
  return Buffer.concat([frame(1, 4, headers), frame(0, 1, Buffer.alloc(5))]);
}
