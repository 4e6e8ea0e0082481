import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { CudaSharedMemoryError, type CudaSharedMemoryErrorCode } from "../../src/client/errors.js";
import { type KeepAliveOptions, keepAlive, type Renew } from "../../src/client/keep-alive.js";
import type { Region } from "../../src/client/region.js";
import { FakeClock } from "../helpers/fake-clock.js";

const leaseMs = 9000;
const region = { name: "r", leaseMs, generation: 7n } as Region;

/** A lease that is renewed by hand: each renewal waits in `asked` for its answer. */
function start(options: Partial<KeepAliveOptions> = {}) {
  const clock = new FakeClock();
  const abort = new AbortController();
  const asked: { options: Parameters<Renew>[0]; answer: (answer: Region | CudaSharedMemoryError) => void }[] =
    [];
  const renew: Renew = (renewal) =>
    new Promise((resolve, reject) => {
      const answer = (given: Region | CudaSharedMemoryError) =>
        given instanceof CudaSharedMemoryError ? reject(given) : resolve(given);
      renewal.signal.addEventListener("abort", () => {
        const timedOut = renewal.signal.reason?.name === "TimeoutError";
        answer(refusal(timedOut ? "DEADLINE_EXCEEDED" : "CANCELLED"));
      });
      asked.push({ options: renewal, answer });
    });
  const ended = keepAlive(renew, { signal: abort.signal, ...options }, (ms, run) => clock.after(ms, run));
  return { clock, abort, asked, ended };
}

function refusal(code: CudaSharedMemoryErrorCode): CudaSharedMemoryError {
  return new CudaSharedMemoryError(code, `refused: ${code}`);
}

/** Lets what is settled be noticed, as far as promises alone go. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

test("renews at once and then each third of the lease, always the same registration", async () => {
  const { clock, abort, asked, ended } = start({ leaseMs });
  expect(asked).toHaveLength(1);
  expect(asked[0]?.options).toMatchObject({ leaseMs, generation: undefined });
  for (let renewals = 1; renewals <= 5; renewals++) {
    asked.at(-1)?.answer(region);
    await settled();
    clock.advance(leaseMs / 3 - 1);
    await settled();
    expect(asked).toHaveLength(renewals);
    clock.advance(1);
    await settled();
    expect(asked).toHaveLength(renewals + 1);
    expect(asked.at(-1)?.options).toMatchObject({ leaseMs, generation: 7n });
  }
  abort.abort();
  await ended;
});

test.each(["while it waits", "while it renews"])(
  "an abort %s ends it, and leaves no timer and no listener",
  async (when) => {
    const { clock, abort, asked, ended } = start();
    asked[0]?.answer(region);
    await settled();
    if (when === "while it renews") clock.advance(leaseMs / 3);
    await settled();
    abort.abort();
    await ended;
    expect(clock.pending).toBe(0);
    expect(getEventListeners(abort.signal, "abort")).toEqual([]);
  },
);

test("a signal that is aborted already renews nothing", async () => {
  const { asked, ended } = start({ signal: AbortSignal.abort() });
  await ended;
  expect(asked).toEqual([]);
});

test.each<CudaSharedMemoryErrorCode>([
  "NOT_FOUND",
  "FAILED_PRECONDITION",
  "PERMISSION_DENIED",
  "UNAUTHENTICATED",
  "INVALID_ARGUMENT",
  "UNKNOWN",
])("%s ends it with that error", async (code) => {
  const errors: unknown[] = [];
  const { clock, asked, ended } = start({ onError: (error) => errors.push(error) });
  const rejected = expect(ended).rejects.toMatchObject({ code });
  asked[0]?.answer(region);
  await settled();
  clock.advance(leaseMs / 3);
  await settled();
  asked[1]?.answer(refusal(code));
  await rejected;
  expect(errors).toEqual([]);
  expect(clock.pending).toBe(0);
});

test("the first renewal's error ends it whatever it is", async () => {
  const { asked, ended } = start();
  asked[0]?.answer(refusal("UNAVAILABLE"));
  await expect(ended).rejects.toMatchObject({ code: "UNAVAILABLE" });
});

test.each<CudaSharedMemoryErrorCode>(["UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "INTERNAL"])(
  "%s is told, and tried again three times as often, for as long as it takes",
  async (code) => {
    const errors: unknown[] = [];
    const { clock, abort, asked, ended } = start({ onError: (error) => errors.push(error.code) });
    asked[0]?.answer(region);
    await settled();
    clock.advance(leaseMs / 3);
    await settled();
    for (let failures = 1; failures <= 20; failures++) {
      asked.at(-1)?.answer(refusal(code));
      await settled();
      clock.advance(leaseMs / 9);
      await settled();
      expect(asked).toHaveLength(2 + failures);
    }
    expect(errors).toEqual(Array(20).fill(code));
    asked.at(-1)?.answer(region);
    await settled();
    clock.advance(leaseMs / 3);
    await settled();
    expect(asked).toHaveLength(23);
    abort.abort();
    await ended;
  },
);

test("a renewal without an answer is given up in time for another one before the lease is over", async () => {
  const errors: unknown[] = [];
  const { clock, abort, asked, ended } = start({ onError: (error) => errors.push(error.code) });
  const began = clock.now();
  asked[0]?.answer(region);
  await settled();
  clock.advance(leaseMs / 3);
  await settled();
  clock.advance(leaseMs / 3);
  await settled();
  expect(errors).toEqual(["DEADLINE_EXCEEDED"]);
  clock.advance(leaseMs / 9);
  await settled();
  expect(asked).toHaveLength(3);
  expect(clock.now() - began).toBeLessThan(leaseMs);
  abort.abort();
  await ended;
});
