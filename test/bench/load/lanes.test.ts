import { expect, test } from "vitest";
import { drive, type Lane, repeating, type Sender } from "../../../bench/load/lanes.js";

interface Request {
  readonly counts: boolean;
  readonly name: string;
}

const never = new Promise<never>(() => {});

/** Answers every request a turn later with one byte, and notes it. */
function recorder(sent: string[] = []): Sender<Request> {
  return {
    send({ name }, done) {
      sent.push(name);
      setImmediate(done, 1);
    },
    failed: never,
  };
}

function once(...names: string[]): Lane<Request> {
  const left = names.map((name) => ({ name, counts: !name.startsWith("-") }));
  return { next: () => left.shift() };
}

test("each lane sends one request after the other, beside the other lanes", async () => {
  const sent: string[] = [];
  const sender = recorder(sent);
  const timing = await drive([once("a1", "a2"), once("b1", "b2", "b3")], () => sender);
  expect(sent).toEqual(["a1", "b1", "a2", "b2", "b3"]);
  expect(timing.requests).toBe(5);
  expect(timing.bytes).toBe(5);
  expect(timing.elapsedSeconds).toBeGreaterThan(0);
  expect(timing.waitedSeconds).toBeGreaterThan(0);
  expect(timing.p99Micros).toBeGreaterThanOrEqual(timing.p50Micros);
});

test("requests that do not count are sent, and are in no figure", async () => {
  const sent: string[] = [];
  const timing = await drive([once("-before", "it", "-after")], () => recorder(sent));
  expect(sent).toHaveLength(3);
  expect(timing.requests).toBe(1);
});

test("a sender that fails ends it", async () => {
  const failing: Sender<Request> = { send() {}, failed: Promise.reject(new Error("broken")) };
  await expect(drive([once("a")], () => failing)).rejects.toThrow("broken");
});

test("a repeated sequence is sent once at least, and never left in the middle", () => {
  const lane = repeating(["register", "unregister"], 0);
  expect([lane.next(), lane.next(), lane.next()]).toEqual(["register", "unregister", undefined]);
});
