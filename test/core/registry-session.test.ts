import { expect, test } from "vitest";
import { createDeferred } from "../helpers/deferred.js";
import { createLifecycle, nothing, within } from "../helpers/lifecycle-harness.js";
import { context, expectRejection, request, untilIdle } from "../helpers/registry-harness.js";

test("a region goes when the session ends that it was registered in", async () => {
  const { driver, registry, states, leftovers, openSession, changes } = createLifecycle();
  const hold = openSession();
  const region = await registry.register(request("r", driver.allocate(64).handle), within(hold));
  await registry.register(request("s", driver.allocate(64).handle), context);
  expect(region).toMatchObject({ session: hold.session.id, owner: `session:${hold.session.id}` });
  hold.end();
  await untilIdle();
  expect(states()).toEqual(["s ready"]);
  expect(changes.at(-1)).toMatchObject({ kind: "unregistered", reason: "session_ended" });
  await registry.unregister("s", context);
  expect(leftovers()).toEqual(nothing);
});

test("a broken session takes its regions along once nobody resumed it in time", async () => {
  const { driver, registry, states, openSession, clock } = createLifecycle();
  const hold = openSession(10_000);
  await registry.register(request("r", driver.allocate(64).handle), within(hold));
  hold.release();
  clock.advance(9999);
  await untilIdle();
  expect(states()).toEqual(["r ready"]);
  const resumed = registry.sessions.resume(hold.secret, {
    owner: "anonymous",
    isAdmin: false,
    session: null,
  });
  clock.advance(60_000);
  await untilIdle();
  expect(states()).toEqual(["r ready"]);
  resumed.release();
  clock.advance(10_000);
  await untilIdle();
  expect(states()).toEqual([]);
});

test("a session of a principal's is his, and so are its regions", async () => {
  const { driver, registry, openSession } = createLifecycle();
  const hold = openSession(0, "alice");
  const region = await registry.register(request("r", driver.allocate(64).handle), within(hold));
  expect(region).toMatchObject({ owner: "alice", session: hold.session.id });
});

test("nothing is registered in a session that has ended", async () => {
  const { driver, registry, openSession, leftovers } = createLifecycle();
  const hold = openSession();
  hold.end();
  await expectRejection(
    registry.register(request("r", driver.allocate(64).handle), within(hold)),
    "UNAUTHENTICATED",
    "failed to register shared memory region 'r': its session has ended",
  );
  expect(driver.openCalls).toBe(0);
  expect(leftovers()).toEqual(nothing);
});

test("a register is undone if its session ends during it, and the name is free again", async () => {
  const { driver, registry, openSession, leftovers, changes } = createLifecycle();
  const opening = createDeferred();
  driver.beforeOpen = () => opening.promise;
  const hold = openSession();
  const { handle } = driver.allocate(64);
  const registering = registry.register(request("r", handle), within(hold));
  await untilIdle();
  hold.end();
  await expectRejection(registering, "UNAUTHENTICATED", /its session has ended/);
  const next = registry.register(request("r", handle), context);
  opening.resolve();
  expect((await next).owner).toBe("anonymous");
  expect(changes.map(({ region }) => region.session)).toEqual([null]);
  await registry.unregister("r", context);
  expect(leftovers()).toEqual(nothing);
});

test("a pinned region drains when its session ends", async () => {
  const { driver, registry, openSession, states, leftovers } = createLifecycle();
  const hold = openSession();
  await registry.register(request("r", driver.allocate(64).handle), within(hold));
  const pin = registry.pin("r", null, within(hold));
  hold.end();
  await untilIdle();
  expect(states()).toEqual(["r draining"]);
  pin.release();
  await untilIdle();
  expect(leftovers()).toEqual(nothing);
});

test("regions of an ended session whose end cannot be written down go later, and cannot be renewed", async () => {
  const { driver, registry, openSession, journal, clock, states, leftovers } = createLifecycle();
  const hold = openSession();
  for (const name of ["a", "b"]) {
    await registry.register(request(name, driver.allocate(64).handle, { leaseMs: 60_000 }), within(hold));
  }
  journal.isFull = true;
  hold.end();
  await untilIdle();
  expect(states()).toEqual(["a ready", "b ready"]);
  await expectRejection(
    registry.renew("a", { leaseMs: 30_000 }, within(hold)),
    "FAILED_PRECONDITION",
    "shared memory region 'a' is being unregistered",
  );
  journal.isFull = false;
  clock.advance(5000);
  await untilIdle();
  expect(states()).toEqual([]);
  expect(leftovers()).toEqual(nothing);
});

test("a hundred regions of a session go with it, though their closes take their time", async () => {
  const { driver, registry, openSession, leftovers } = createLifecycle();
  const hold = openSession();
  for (let index = 0; index < 100; index++) {
    await registry.register(request(`r${index}`, driver.allocate(64).handle), within(hold));
  }
  driver.beforeClose = untilIdle;
  hold.end();
  while (registry.statuses().length > 0) await untilIdle();
  expect(leftovers()).toEqual(nothing);
});

test("a stop ends no session, so that its regions can be taken up again", async () => {
  const { driver, registry, openSession, journal, leftovers } = createLifecycle();
  const hold = openSession(10_000);
  const broken = openSession(10_000);
  await registry.register(request("r", driver.allocate(64).handle), within(hold));
  await registry.register(request("s", driver.allocate(64).handle), within(broken));
  broken.release();
  await registry.close();
  hold.end();
  await untilIdle();
  expect(await hold.ended).toBe("stopping");
  expect(leftovers()).toEqual({ ...nothing, written: ["r", "s"] });
  const [record] = journal.records.values();
  expect(record?.session).toMatchObject({ id: hold.session.id, resumeGraceMs: 10_000 });
  expect(Object.values(record?.session ?? {})).not.toContain(hold.secret);
});
