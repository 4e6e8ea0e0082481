import { expect, test } from "vitest";
import { exitingText, RegistryError } from "../../../src/core/errors.js";
import { FakeClock } from "../../helpers/fake-clock.js";
import { context, untilIdle } from "../../helpers/registry-harness.js";
import { Face, type RawConnection } from "../face.js";

/** As large as the labels of a region can be, so that few events fill the buffers of a socket. */
const labels = new Map(Array.from({ length: 32 }, (_, i) => [`label-${i}`, "x".repeat(255)]));

/** A reader of events that has stopped to read, and how many of them the service has taken up for it. */
async function startSlowReader(clock?: FakeClock) {
  const face = await Face.start(clock && { clock });
  const watch = face.registry.watch.bind(face.registry);
  let taken = 0;
  face.registry.watch = async function* (options, call) {
    for await (const event of watch(options, call)) {
      taken++;
      yield event;
    }
  };
  const connection: RawConnection = await face.open();
  connection.send("GET /v1/events HTTP/1.1\r\n\r\n");
  await connection.until(/event: hello\n/);
  connection.socket.pause();
  const { handle } = face.driver.allocate(64);
  const change = async (count: number) => {
    for (let i = 0; i < count; i++) {
      await face.registry.register({ name: "r", handle, deviceId: 0n, byteSize: 64n, labels }, context);
      await face.registry.unregister("r", context);
      if (i % 50 === 0) await untilIdle();
    }
  };
  /** Makes changes until none is taken up for the reader any more. */
  const fill = async () => {
    for (let before = -1; before < taken; ) {
      before = taken;
      await change(500);
    }
  };
  return { face, connection, change, fill, taken: () => taken };
}

test("a reader that does not read has one event kept for it, and is told that it fell behind", async () => {
  const { face, connection, change, fill, taken } = await startSlowReader();
  await using _ = face;
  await fill();
  const before = taken();
  await change(4200);
  expect(taken()).toBe(before);
  connection.socket.resume();
  const rest = await connection.until(/event: error\ndata: .*\n\n\r\n0\r\n\r\n$/);
  expect(/event: error\ndata: (.*)/.exec(rest)?.[1]).toMatch(
    /^\{"code":"RESOURCE_EXHAUSTED","error":"the watch fell behind: revision \d+ is no longer known/,
  );
  // The connection is as good as ever.
  connection.send("GET /v2/health/live HTTP/1.1\r\nConnection: close\r\n\r\n");
  expect(await connection.untilClosed()).toMatch(/^HTTP\/1\.1 200 OK/);
  expect(face.faults).toEqual([]);
}, 60_000);

test("a reader that takes nothing for half a minute is cut off", async () => {
  const clock = new FakeClock();
  const { face, connection, fill } = await startSlowReader(clock);
  await using _ = face;
  await fill();
  expect(clock.pending).toBe(1);
  clock.advance(29_999);
  await face.get("/v2/health/live");
  expect(connection.socket.destroyed).toBe(false);
  clock.advance(1);
  connection.socket.resume();
  expect(await connection.untilClosed()).not.toMatch(/0\r\n\r\n$/);
  while (clock.pending > 0) await face.get("/v2/health/live");
  expect(face.faults).toEqual([]);
}, 60_000);

test("a reader that does not read holds up no stop", async () => {
  const clock = new FakeClock();
  const { face, fill } = await startSlowReader(clock);
  await using _ = face;
  await fill();
  face.shutdown.abort(new RegistryError("UNAVAILABLE", exitingText));
  const closed = face.server.close(new AbortController().signal);
  clock.advance(1000);
  await closed;
  expect([clock.pending, face.faults]).toEqual([0, []]);
}, 60_000);

test("a reader that leaves without having read is forgotten", async () => {
  const clock = new FakeClock();
  const { face, connection, fill } = await startSlowReader(clock);
  await using _ = face;
  await fill();
  connection.socket.destroy();
  // The write that never came to its end may need the time that a stop would give it.
  while (clock.pending > 0) {
    await face.get("/v2/health/live");
    clock.advance(100);
  }
  expect(face.faults).toEqual([]);
}, 60_000);
