import { expect, test } from "vitest";
import { ChangeHistory, type WatchEvent, type WatchOptions } from "../../src/core/change-history.js";
import { RegistryError } from "../../src/core/errors.js";
import type { RegionStatus } from "../../src/core/region.js";
import { regionStatus } from "../helpers/region-status.js";
import { expectRejection } from "../helpers/registry-harness.js";

/** A history that keeps four changes unless said otherwise, of a registry whose last change had the number `revision`. */
function setUp(revision = 0n, capacity = 4) {
  let current = revision;
  const history = new ChangeHistory(() => current, capacity);
  return {
    history,
    record(name = "r", owner = "anonymous") {
      current++;
      const region = regionStatus({ name, owner });
      history.record({ kind: "registered", reason: "requested", region, revision: current });
    },
    /** A change that observers were told of and that nobody saw. */
    callOff() {
      current++;
    },
    watch: (options: WatchOptions = {}, isVisible = (_: RegionStatus) => true, signal?: AbortSignal) =>
      history.watch(options, isVisible, signal),
  };
}

function inShort(event: WatchEvent | undefined): string {
  if (event?.kind === "start") return `start ${event.revision}`;
  if (event?.kind === "gap") return `gap ${event.from}-${event.to}`;
  return event === undefined ? "end" : `${event.change.region.name} ${event.change.revision}`;
}

/** The next events, in short. */
async function take(events: AsyncGenerator<WatchEvent, void>, count: number): Promise<string[]> {
  const taken: string[] = [];
  while (taken.length < count) taken.push(inShort((await events.next()).value ?? undefined));
  return taken;
}

test("a watch tells where it starts and every change after that, in order", async () => {
  const { record, watch } = setUp();
  record("before");
  const events = watch();
  expect(await take(events, 1)).toEqual(["start 1"]);
  record("a");
  record("b");
  expect(await take(events, 2)).toEqual(["a 2", "b 3"]);
  const next = take(events, 1);
  record("c");
  expect(await next).toEqual(["c 4"]);
});

test("a watch from a revision tells the changes from that on", async () => {
  const { record, watch } = setUp();
  for (const name of ["a", "b", "c"]) record(name);
  expect(await take(watch({ fromRevision: 2n }), 3)).toEqual(["start 3", "b 2", "c 3"]);
  const events = watch({ fromRevision: 4n });
  expect(await take(events, 1)).toEqual(["start 3"]);
  record("d");
  expect(await take(events, 1)).toEqual(["d 4"]);
});

test("changes that are no longer known are told as a gap", async () => {
  const { record, watch } = setUp();
  for (const name of ["a", "b", "c", "d", "e", "f"]) record(name);
  expect(await take(watch({ fromRevision: 1n }), 6)).toEqual([
    "start 6",
    "gap 1-2",
    "c 3",
    "d 4",
    "e 5",
    "f 6",
  ]);
  expect(await take(watch({ fromRevision: 2n }), 2)).toEqual(["start 6", "gap 2-2"]);
  expect(await take(watch({ fromRevision: 3n }), 2)).toEqual(["start 6", "c 3"]);
});

test("before the first change there was none, so that is no gap", async () => {
  const { record, watch } = setUp();
  expect(await take(watch({ fromRevision: 0n }), 1)).toEqual(["start 0"]);
  record("a");
  expect(await take(watch({ fromRevision: 0n }), 2)).toEqual(["start 1", "a 1"]);
});

test("the changes of an earlier process are a gap", async () => {
  const { record, watch } = setUp(100n);
  expect(await take(watch({ fromRevision: 1n }), 2)).toEqual(["start 100", "gap 1-100"]);
  record("a");
  expect(await take(watch({ fromRevision: 100n }), 3)).toEqual(["start 101", "gap 100-100", "a 101"]);
  expect(await take(watch({ fromRevision: 101n }), 2)).toEqual(["start 101", "a 101"]);
});

test("a revision that is yet to come is OUT_OF_RANGE", async () => {
  const { record, watch } = setUp();
  record();
  await expectRejection(
    watch({ fromRevision: 3n }).next(),
    "OUT_OF_RANGE",
    "from_revision 3 is yet to come: the revision is 1, perhaps since the service was restarted",
  );
});

test("a reader who is too slow is told that he fell behind", async () => {
  const { record, watch } = setUp();
  const [slow, quick] = [watch(), watch()];
  await take(slow, 1);
  await take(quick, 1);
  for (const name of ["a", "b", "c", "d"]) record(name);
  expect(await take(quick, 4)).toEqual(["a 1", "b 2", "c 3", "d 4"]);
  record("e");
  expect(await take(quick, 1)).toEqual(["e 5"]);
  await expectRejection(
    slow.next(),
    "RESOURCE_EXHAUSTED",
    /^the watch fell behind: revision 1 is no longer known, .* 2; watch from there and list the regions anew$/,
  );
});

test("a change that was called off is not told, and its number is neither a gap nor yet to come", async () => {
  const { record, callOff, watch } = setUp();
  record("a");
  callOff();
  const events = watch({ fromRevision: 3n });
  expect(await take(events, 1)).toEqual(["start 2"]);
  record("b");
  expect(await take(events, 1)).toEqual(["b 3"]);
  expect(await take(watch({ fromRevision: 1n }), 3)).toEqual(["start 3", "a 1", "b 3"]);
});

test("what was called off takes no place in the history", async () => {
  const { record, callOff, watch } = setUp();
  for (const name of ["a", "b", "c", "d"]) record(name);
  for (let count = 0; count < 6; count++) callOff();
  record("e");
  expect(await take(watch({ fromRevision: 1n }), 3)).toEqual(["start 11", "gap 1-1", "b 2"]);
});

test("a reader sees only what he may, and only the region that he asked for", async () => {
  const { record, watch } = setUp();
  record("a", "alice");
  record("b", "bob");
  record("c", "alice");
  const ofAlice = ({ owner }: RegionStatus) => owner === "alice";
  expect(await take(watch({ fromRevision: 1n }, ofAlice), 3)).toEqual(["start 3", "a 1", "c 3"]);
  expect(await take(watch({ fromRevision: 1n, name: "b" }), 2)).toEqual(["start 3", "b 2"]);
  const events = watch({ fromRevision: 1n, name: "c" }, ofAlice);
  expect(await take(events, 2)).toEqual(["start 3", "c 3"]);
});

test.each([
  ["while it waits", 0],
  ["while there is something to read", 1],
])("a watch whose signal is aborted %s ends with the signal's reason", async (_, unread) => {
  const { record, watch } = setUp();
  const left = new AbortController();
  const events = watch({}, () => true, left.signal);
  await take(events, 1);
  for (let index = 0; index < unread; index++) record();
  const next = unread === 0 ? events.next() : undefined;
  left.abort(new RegistryError("UNAVAILABLE", "Server exiting"));
  await expectRejection(next ?? events.next(), "UNAVAILABLE", "Server exiting");
  expect(await events.next()).toEqual({ value: undefined, done: true });
});

test("a watch that is cancelled without a reason of ours is CANCELLED", async () => {
  const { watch } = setUp();
  const left = new AbortController();
  const events = watch({}, () => true, left.signal);
  await take(events, 1);
  const next = events.next();
  left.abort();
  await expectRejection(next, "CANCELLED", "the call was cancelled");
});

test("whoever reads thousands of changes at once, or looks for one among them, lets others have their turns", async () => {
  const count = 3_200;
  const { record, watch } = setUp(0n, count);
  for (let i = 1; i < count; i++) record(`r${i}`);
  record("last");
  for (const [options, read] of [
    [{ fromRevision: 1n }, count + 1],
    [{ fromRevision: 1n, name: "last" }, 2],
  ] as const) {
    let turns = 0;
    let isDone = false;
    const takeTurn = () => {
      turns++;
      if (!isDone) setImmediate(takeTurn);
    };
    setImmediate(takeTurn);
    expect((await take(watch(options), read)).at(-1)).toBe("last 3200");
    isDone = true;
    expect(turns).toBeGreaterThan(50);
  }
});

test("a reader who let others have their turn and fell behind meanwhile is told so", async () => {
  const { record, watch } = setUp(0n, 40);
  for (let i = 0; i < 40; i++) record();
  const events = watch({ fromRevision: 1n });
  await take(events, 33);
  const next = take(events, 1);
  for (let i = 0; i < 40; i++) record();
  await expectRejection(next, "RESOURCE_EXHAUSTED", /fell behind/);
});
