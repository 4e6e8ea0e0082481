import { expect, test } from "vitest";
import { Unanswered, within } from "../../src/doctor/within.js";

const never = () => new Promise<never>(() => {});

test("gives what comes in time, and leaves no listener behind", async () => {
  const stop = new AbortController();
  let given: AbortSignal | undefined;
  const answer = await within(60_000, stop.signal, async (signal) => {
    given = signal;
    return "answer";
  });
  expect(answer).toBe("answer");
  stop.abort();
  expect(given?.aborted).toBe(false);
});

test("passes on what went wrong", async () => {
  const failure = new Error("refused");
  await expect(within(60_000, new AbortController().signal, () => Promise.reject(failure))).rejects.toBe(
    failure,
  );
});

test("gives up what does not come in time, and says so to the work", async () => {
  let given: AbortSignal | undefined;
  const late = within(20, new AbortController().signal, (signal) => {
    given = signal;
    return never();
  });
  await expect(late).rejects.toThrow(new Unanswered(20));
  await expect(late).rejects.toThrow("no answer within 0.02 s (--timeout-secs)");
  expect(given?.aborted).toBe(true);
});

test("ends with its signal, and starts nothing once that is aborted", async () => {
  const stop = new AbortController();
  const reason = new Error("stop");
  let given: AbortSignal | undefined;
  const stopped = within(60_000, stop.signal, (signal) => {
    given = signal;
    return never();
  });
  stop.abort(reason);
  await expect(stopped).rejects.toBe(reason);
  expect(given?.reason).toBe(reason);
  let started = false;
  const refused = within(60_000, stop.signal, async () => {
    started = true;
  });
  await expect(refused).rejects.toBe(reason);
  expect(started).toBe(false);
});
