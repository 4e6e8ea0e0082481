import { expect, test } from "vitest";
import { exitingText, RegistryError } from "../../../src/core/errors.js";
import { FakeClock } from "../../helpers/fake-clock.js";
import { untilIdle } from "../../helpers/registry-harness.js";
import { Face } from "../face.js";
import { put } from "./regions.js";

/** The text of an answer, piece by piece. */
function piecesOf(answer: Response): { next(): Promise<string | null>; cancel(): Promise<void> } {
  if (answer.body === null) throw new Error("no body");
  const reader = answer.body.getReader();
  return {
    next: async () => {
      const { done, value } = await reader.read();
      return done ? null : Buffer.from(value).toString();
    },
    cancel: () => reader.cancel(),
  };
}

test("an application that mounts this one hands events on as they happen", async () => {
  await using face = await Face.start();
  const answer = await face.app.request("/v1/events?from_revision=1");
  expect([answer.status, answer.headers.get("content-type"), answer.headers.get("cache-control")]).toEqual([
    200,
    "text/event-stream",
    "no-store",
  ]);
  expect(answer.headers.get("content-length")).toBeNull();
  const pieces = piecesOf(answer);
  expect(await pieces.next()).toMatch(/^id: test\/0\nevent: hello\n/);
  await put(face, "r", face.driver.allocate(64));
  expect(await pieces.next()).toMatch(/^id: test\/1\nevent: change\n/);
  face.shutdown.abort(new RegistryError("UNAVAILABLE", exitingText));
  expect(await pieces.next()).toMatch(/^event: error\ndata: \{"code":"UNAVAILABLE"/);
  expect(await pieces.next()).toBeNull();
});

test("events that nobody reads any more are forgotten", async () => {
  const clock = new FakeClock();
  await using face = await Face.start({ clock });
  const pieces = piecesOf(await face.app.request("/v1/events"));
  await pieces.next();
  const waiting = pieces.next();
  await untilIdle();
  expect(clock.pending).toBe(1);
  await pieces.cancel();
  expect([await waiting, clock.pending, face.faults]).toEqual([null, 0, []]);
});

test("HEAD and refusals have no events", async () => {
  const clock = new FakeClock();
  await using face = await Face.start({ clock });
  const head = await face.app.request("/v1/events", { method: "HEAD" });
  expect([head.status, head.body]).toEqual([200, null]);
  expect((await face.app.request("/v1/events?from_revision=9")).status).toBe(400);
  await untilIdle();
  expect(clock.pending).toBe(0);
});
