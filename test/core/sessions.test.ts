import { createHash } from "node:crypto";
import { inspect } from "node:util";
import { expect, test } from "vitest";
import { anonymousCaller, type Caller } from "../../src/core/caller.js";
import { RegistryError } from "../../src/core/errors.js";
import { type HoldEnd, type SessionInfo, Sessions } from "../../src/core/sessions.js";
import { FakeClock } from "../helpers/fake-clock.js";

const alice: Caller = { owner: "alice", isAdmin: false, session: null };
const unknown =
  "UNAUTHENTICATED: the session is unknown or has ended; open a new one, or send no cudashm-session";
const notHis =
  "PERMISSION_DENIED: the session was opened by another; call with the token that it was opened with";
const hash = (text: string) => createHash("sha256").update(text).digest("hex");

function setUp() {
  const clock = new FakeClock();
  const ended: SessionInfo[] = [];
  const sessions = new Sessions({ clock, onEnd: (session) => void ended.push(session) });
  const open = (resumeGraceMs = 0, caller: Caller = anonymousCaller) =>
    sessions.open({ caller, resumeGraceMs });
  const endedIds = () => ended.map(({ id }) => id);
  return { clock, sessions, open, ended, endedIds };
}

/** What a call is refused with; null if it is not. */
function refusal(call: () => unknown): string | null {
  try {
    call();
    return null;
  } catch (error) {
    if (error instanceof RegistryError) return `${error.code}: ${error.message}`;
    throw error;
  }
}

/** How a hold ended; null while it has not. */
async function stateOf(hold: { readonly ended: Promise<HoldEnd> }): Promise<HoldEnd | null> {
  return Promise.race([hold.ended, Promise.resolve(null)]);
}

test("a session has a public id and a secret, both random", () => {
  const { open } = setUp();
  const [a, b] = [open(), open()];
  expect(a.session.id).toMatch(/^[0-9a-f]{16}$/);
  expect(a.secret).toMatch(/^[0-9a-f]{32}$/);
  expect([a.session.id, a.secret]).not.toEqual([b.session.id, b.secret]);
  expect(a.secret).not.toContain(a.session.id);
});

test("what is registered in it belongs to whoever opened it, or to itself if he is unknown", () => {
  const { open } = setUp();
  expect(open(0, alice).session.owner).toBe("alice");
  const { session } = open();
  expect(session).toEqual({ id: session.id, owner: `session:${session.id}`, resumeGraceMs: 0 });
});

test("a session that is opened from within another has an owner of its own, unless a token names one", () => {
  const { open } = setUp();
  const { session: outer } = open();
  const { session: inner } = open(0, { owner: outer.owner, isAdmin: false, session: outer.id });
  expect(inner.owner).toBe(`session:${inner.id}`);
  expect(open(0, { ...alice, session: outer.id }).session.owner).toBe("alice");
});

test("it is known by its secret until it ends, and by nothing else", () => {
  const { open, sessions, ended } = setUp();
  const hold = open();
  expect(sessions.identify(hold.secret, "anonymous")).toEqual(hold.session);
  for (const text of ["", hold.session.id, hold.secret.slice(1), `${hold.secret}, ${hold.secret}`]) {
    expect(refusal(() => sessions.identify(text, "anonymous"))).toBe(unknown);
  }
  expect(sessions.isOpen(hold.session.id)).toBe(true);
  hold.release();
  expect(refusal(() => sessions.identify(hold.secret, "anonymous"))).toBe(unknown);
  expect(refusal(() => sessions.resume(hold.secret, anonymousCaller))).toBe(unknown);
  expect(sessions.isOpen(hold.session.id)).toBe(false);
  expect(ended).toEqual([hold.session]);
});

test("another principal than the one who opened it gets nowhere with its secret", () => {
  const { open, sessions } = setUp();
  const [ofAlice, ofNobody] = [open(0, alice), open()];
  const bob: Caller = { owner: "bob", isAdmin: true, session: null };
  expect(refusal(() => sessions.identify(ofAlice.secret, "bob"))).toBe(notHis);
  expect(refusal(() => sessions.identify(ofAlice.secret, "anonymous"))).toBe(notHis);
  expect(refusal(() => sessions.identify(ofNobody.secret, "alice"))).toBe(notHis);
  expect(refusal(() => sessions.identify(ofNobody.secret, ofNobody.session.owner))).toBe(notHis);
  expect(refusal(() => sessions.resume(ofAlice.secret, bob))).toBe(notHis);
  expect(refusal(() => sessions.resume(ofNobody.secret, alice))).toBe(notHis);
});

test("without a grace it ends when its stream breaks, once", () => {
  const { open, endedIds, clock } = setUp();
  const hold = open();
  hold.release();
  hold.release();
  hold.end();
  expect(endedIds()).toEqual([hold.session.id]);
  expect(clock.pending).toBe(0);
});

test("within its grace it is as good as held, and after it has ended", () => {
  const { open, sessions, endedIds, clock } = setUp();
  const hold = open(5000, alice);
  hold.release();
  clock.advance(4999);
  expect(sessions.identify(hold.secret, "alice")).toEqual(hold.session);
  expect(endedIds()).toEqual([]);
  clock.advance(1);
  expect(endedIds()).toEqual([hold.session.id]);
  expect(refusal(() => sessions.identify(hold.secret, "alice"))).toBe(unknown);
});

test("a client that is done ends it at once, whatever its grace", () => {
  const { open, endedIds, clock } = setUp();
  const hold = open(5000);
  hold.end();
  expect(endedIds()).toEqual([hold.session.id]);
  expect(clock.pending).toBe(0);
});

test("a session that was resumed has its whole grace again", async () => {
  const { open, sessions, endedIds, clock } = setUp();
  const first = open(5000);
  first.release();
  clock.advance(4999);
  const second = sessions.resume(first.secret, anonymousCaller);
  expect(second).toMatchObject({ session: first.session, secret: first.secret });
  clock.advance(1e9);
  expect(endedIds()).toEqual([]);
  second.release();
  clock.advance(4999);
  expect(endedIds()).toEqual([]);
  clock.advance(1);
  expect(endedIds()).toEqual([first.session.id]);
  expect([await stateOf(first), await stateOf(second)]).toEqual(["released", "released"]);
});

test("a stream that still holds it is told that another took over, and has no more say", async () => {
  const { open, sessions, endedIds } = setUp();
  const first = open();
  const within = { owner: first.session.owner, isAdmin: false, session: first.session.id };
  const second = sessions.resume(first.secret, within);
  expect([await stateOf(first), await stateOf(second)]).toEqual(["taken over", null]);
  first.release();
  first.end();
  expect(endedIds()).toEqual([]);
  second.release();
  expect(endedIds()).toEqual([first.session.id]);
});

test.each([-1, 86_400_001, Number.NaN, Number.POSITIVE_INFINITY])("a grace of %d ms is refused", (ms) => {
  const { open } = setUp();
  expect(refusal(() => open(ms))).toBe(
    `INVALID_ARGUMENT: a session outlives its stream by 0 to 86400 seconds, got ${ms / 1000}`,
  );
  expect(open(86_400_000).session.resumeGraceMs).toBe(86_400_000);
});

test("there are at most 10,000 at once, those that wait to be resumed included", () => {
  const { open, clock } = setUp();
  open(1).release();
  for (let i = 1; i < 10_000; i++) open();
  expect(refusal(() => open())).toBe(
    "RESOURCE_EXHAUSTED: there are as many sessions as this service takes (10000); end some first",
  );
  clock.advance(1);
  open();
});

test("what is written down of it is taken up by the next process: its grace begins then", () => {
  const { open, sessions } = setUp();
  const hold = open(5000, alice);
  const record = sessions.record(hold.session.id);
  if (record === null) throw new Error("the session is open");
  expect(record).toEqual({ ...hold.session, secretDigest: hash(hold.secret) });

  const next = setUp();
  next.sessions.restore(record);
  next.clock.advance(3000);
  next.sessions.restore(record);
  expect(next.sessions.record(hold.session.id)).toEqual(record);
  expect(next.sessions.identify(hold.secret, "alice")).toEqual(hold.session);
  expect(refusal(() => next.sessions.identify(hold.secret, "anonymous"))).toBe(notHis);
  next.clock.advance(1999);
  expect(next.sessions.isOpen(hold.session.id)).toBe(true);
  next.clock.advance(1);
  expect(next.ended).toEqual([hold.session]);
  expect(next.sessions.record(hold.session.id)).toBeNull();
});

test("a session of nobody known is taken up as one", () => {
  const { open, sessions } = setUp();
  const hold = open(5000);
  const record = sessions.record(hold.session.id);
  if (record === null) throw new Error("the session is open");
  const next = setUp();
  next.sessions.restore(record);
  const resumed = next.sessions.resume(hold.secret, anonymousCaller);
  expect(resumed.session).toEqual(hold.session);
  expect(next.clock.pending).toBe(0);
});

test("a session without a grace ended with the process that held it", () => {
  const { open, sessions } = setUp();
  const record = sessions.record(open(0).session.id);
  if (record === null) throw new Error("the session is open");
  const next = setUp();
  next.sessions.restore(record);
  expect(next.sessions.isOpen(record.id)).toBe(false);
  expect([next.ended, next.clock.pending]).toEqual([[], 0]);
});

test("when the process stops every stream is let go of, and no session begins or ends", async () => {
  const { open, sessions, ended, clock } = setUp();
  const [held, broken] = [open(), open(5000)];
  broken.release();
  sessions.closeAll();
  expect([await stateOf(held), await stateOf(broken)]).toEqual(["stopping", "released"]);
  held.release();
  held.end();
  clock.advance(1e9);
  expect(ended).toEqual([]);
  expect([sessions.isOpen(held.session.id), sessions.isOpen(broken.session.id)]).toEqual([true, true]);
  expect(sessions.identify(held.secret, "anonymous")).toEqual(held.session);
  expect(refusal(() => open())).toBe("UNAVAILABLE: Server exiting");
  expect(refusal(() => sessions.resume(held.secret, anonymousCaller))).toBe("UNAVAILABLE: Server exiting");
});

test("nothing that is kept holds the secret", () => {
  const { open, sessions } = setUp();
  const { secret, session } = open(5000);
  expect(inspect(sessions, { depth: 10, showHidden: true })).not.toContain(secret);
  expect(inspect([session, sessions.record(session.id)])).not.toContain(secret);
});
