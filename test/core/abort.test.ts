import { expect, test } from "vitest";
import {
  abortError,
  CallAbort,
  type CallSignal,
  listenForAbort,
  orAborted,
  untilDoneOrAborted,
} from "../../src/core/abort.js";
import { RegistryError } from "../../src/core/errors.js";

const gone = new RegistryError("CANCELLED", "gone");

/** Both kinds of signal there are, each with what aborts it. */
const kinds: Record<string, () => { signal: CallSignal; abort: (reason: unknown) => void }> = {
  "an AbortSignal": () => {
    const controller = new AbortController();
    return { signal: controller.signal, abort: (reason) => controller.abort(reason) };
  },
  "a CallAbort": () => {
    const call = new CallAbort();
    return { signal: call, abort: (reason) => call.abort(reason) };
  },
};

test.each(Object.keys(kinds))("%s tells each who still listens once, and keeps the first reason", (kind) => {
  const { signal, abort } = kinds[kind]?.() ?? expect.fail();
  const told: string[] = [];
  const listen = (name: string) => listenForAbort(signal, () => told.push(name));
  listen("a");
  const stop = listen("b");
  // What one is told may have another stop to listen, or abort anew.
  listenForAbort(signal, () => abort("again"));
  for (let count = 0; count < 20; count++) listen("many")();
  stop();
  expect([signal.aborted, told]).toEqual([false, []]);
  abort(gone);
  abort("again");
  listen("late");
  expect([signal.aborted, signal.reason, told]).toEqual([true, gone, ["a"]]);
  expect(abortError(signal)).toBe(gone);
});

test.each(Object.keys(kinds))("what waits is over when %s is aborted", async (kind) => {
  const { signal, abort } = kinds[kind]?.() ?? expect.fail();
  const never = new Promise<never>(() => {});
  expect(await orAborted(Promise.resolve(1), signal)).toBe(1);
  const waiting = [untilDoneOrAborted(never, signal), orAborted(never, signal).catch((error) => error)];
  abort(undefined);
  expect((await Promise.all(waiting))[1]).toMatchObject({ code: "CANCELLED" });
  await untilDoneOrAborted(never, signal);
});
