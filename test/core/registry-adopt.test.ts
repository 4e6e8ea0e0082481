import { expect, test } from "vitest";
import { RegistryError } from "../../src/core/errors.js";
import type { RegionRecord } from "../../src/core/journal.js";
import type { CallContext, RegisterRequest } from "../../src/core/region.js";
import { createDeferred } from "../helpers/deferred.js";
import { driverError } from "../helpers/fake-driver.js";
import { alice, createLifecycle, nothing, within } from "../helpers/lifecycle-harness.js";
import { context, expectRejection, request, untilIdle } from "../helpers/registry-harness.js";

const usable = Promise.resolve();

/** A registry after a restart, and what the one before it wrote down of one region. */
async function restart(
  fields: Partial<RegisterRequest> = {},
  {
    caller = context,
    session,
    ...options
  }: { caller?: CallContext; session?: number } & Parameters<typeof createLifecycle>[0] = {},
) {
  const before = createLifecycle();
  const hold = session === undefined ? undefined : before.openSession(session);
  const exporter = before.exporters.start();
  const { handle } = before.driver.allocate(4096);
  await before.registry.register(
    request("r", handle, { exporter, ...fields }),
    hold === undefined ? caller : within(hold),
  );
  await before.registry.close();
  const [record] = before.journal.records.values();
  if (record === undefined) throw new Error("nothing was written down");
  const now = createLifecycle({ generation: 10n, revision: 100n, ...options });
  now.exporters.start();
  now.journal.records.set(record.generation, record);
  now.driver.allocate(4096, 0, record.handle);
  const adopt = (as: Partial<RegionRecord> = {}, whenUsable = usable, allowsUnverified = false) =>
    now.registry.adopt({ ...record, ...as }, { whenUsable, allowsUnverified });
  return { ...now, record, exporter, hold, adopt };
}

test("a region of an earlier process is there again as it was, but for its lease, which starts anew", async () => {
  const labels = new Map([["model", "resnet"]]);
  const { adopt, registry, record, clock, changes, journal, exporters } = await restart(
    { leaseMs: 10_000, labels, offset: 1024n },
    { caller: alice },
  );
  clock.advance(5000);
  expect(await adopt()).toBeNull();
  const region = registry.status("r");
  expect(region).toMatchObject({
    state: "ready",
    reason: "adopted",
    generation: record.generation,
    owner: "alice",
    protocol: "library",
    offset: 1024n,
    registeredAt: record.registeredAt,
    leaseExpiresAt: clock.now() + 10_000,
    labels,
    isVerified: true,
  });
  expect(registry.adoption).toMatchObject({ pending: 0, adopted: 1, refused: [] });
  expect(changes).toMatchObject([{ kind: "adopted", reason: "adopted", revision: 101n, region }]);
  expect([journal.entries, exporters.watches]).toEqual([[], 1]);
  await registry.unregister("r", alice);
  expect(journal.names()).toEqual([]);
});

test("generations and revisions go on after those of the earlier process", async () => {
  const { registry, driver } = await restart();
  expect(registry.revision).toBe(100n);
  const { generation } = await registry.register(request("s", driver.allocate(64).handle), context);
  expect([generation, registry.revision]).toEqual([11n, 101n]);
});

test("a device is found by its UUID, though its number is another now", async () => {
  const { adopt, registry } = await restart({ deviceId: 1n });
  expect(await adopt({ deviceId: 0 })).toBeNull();
  expect(registry.status("r").deviceId).toBe(1);
});

test.each<[string, Partial<RegionRecord>, RegExp]>([
  [
    "whose exporter is dead",
    { exporter: { pid: 7, startTime: 1n, bootId: "boot", pidNamespace: 1n } },
    /no process 7/,
  ],
  ["of whose exporter nobody knows", { exporter: null }, /its exporter was not named.*--adopt-unverified/],
  ["whose device is gone", { deviceUuid: "GPU-x" }, /device_uuid GPU-x is no device of this service/],
])("a region %s is refused, told so, and no longer written down", async (_, as, reason) => {
  const { adopt, registry, leftovers, record } = await restart();
  const { generation, owner } = record;
  const why = { reason: expect.stringMatching(reason), isForgotten: true };
  const refusal = { ...why, name: "r", generation, owner, session: null };
  expect(await adopt(as)).toEqual(refusal);
  expect(registry.adoption).toMatchObject({ pending: 0, adopted: 0, refused: [refusal] });
  expect([registry.statuses(), leftovers()]).toEqual([[], nothing]);
});

test("a region whose memory the driver does not open is refused", async () => {
  const { adopt, driver, leftovers } = await restart();
  driver.beforeOpen = () => {
    throw driverError(1, "CUDA_ERROR_INVALID_VALUE");
  };
  expect(await adopt()).toMatchObject({
    reason: expect.stringMatching(/CUDA_ERROR_INVALID_VALUE/),
    isForgotten: true,
  });
  expect(leftovers()).toEqual(nothing);
});

test.each([2, 46, 201, 217, 800])(
  "a region is kept for the next process if the driver does not open it for another reason, %d",
  async (cudaCode) => {
    const { adopt, driver, journal, registry } = await restart();
    driver.beforeOpen = () => {
      throw driverError(cudaCode, "CUDA_ERROR_OF_ANOTHER_KIND");
    };
    expect(await adopt()).toMatchObject({
      reason: expect.stringMatching(/CUDA_ERROR_OF_ANOTHER_KIND/),
      isForgotten: false,
    });
    expect([journal.names(), registry.statuses()]).toEqual([["r"], []]);
  },
);

test("a region of whose exporter nobody knows is taken up if that is allowed, and marked", async () => {
  const { adopt, registry } = await restart();
  expect(await adopt({ exporter: null }, usable, true)).toBeNull();
  expect(registry.status("r").isVerified).toBe(false);
});

test("a region is kept for the next process if there is no driver, and its name is free", async () => {
  const { adopt, registry, driver, journal, exporters } = await restart();
  driver.devicesError = new RegistryError("UNAVAILABLE", "no driver");
  expect((await adopt())?.reason).toMatch(/no driver/);
  expect([journal.names(), registry.statuses(), exporters.watches]).toEqual([["r"], [], 0]);
  driver.devicesError = undefined;
  await registry.register(request("r", driver.allocate(64).handle), context);
});

test("a refusal that cannot be written down is written down later", async () => {
  const { adopt, journal, clock, leftovers } = await restart();
  journal.isFull = true;
  expect(await adopt({ exporter: null })).not.toBeNull();
  expect([journal.names(), clock.pending]).toEqual([["r"], 1]);
  journal.isFull = false;
  clock.advance(5000);
  await untilIdle();
  expect(leftovers()).toEqual(nothing);
});

test("while it waits for the driver its name is taken, and nobody sees it", async () => {
  const { adopt, registry, driver, states, changes } = await restart();
  const whenUsable = createDeferred();
  const adopted = adopt({}, whenUsable.promise);
  await expectRejection(
    registry.register(request("r", driver.allocate(64).handle), context),
    "ALREADY_EXISTS",
    /already in manager/,
  );
  await untilIdle();
  expect([registry.adoption.pending, states(), changes, driver.openCalls]).toEqual([1, [], [], 0]);
  whenUsable.resolve();
  expect(await adopted).toBeNull();
  expect([registry.adoption.pending, states()]).toEqual([0, ["r ready"]]);
});

test("whoever registers the same while it waits for the driver gets it once it is there", async () => {
  const { adopt, registry, record } = await restart();
  const whenUsable = createDeferred();
  const adopted = adopt({}, whenUsable.promise);
  const same = registry.register(request("r", record.handle, { isIdempotent: true }), context);
  whenUsable.resolve();
  expect(await adopted).toBeNull();
  expect((await same).generation).toBe(record.generation);
});

test("an unregister while it waits for the driver is answered once it is written down, for good", async () => {
  const { adopt, registry, journal, leftovers, changes } = await restart();
  const writing = createDeferred();
  journal.beforeWrite = () => writing.promise;
  const adopted = adopt({}, createDeferred().promise);
  let isAnswered = false;
  const unregistered = registry.unregister("r", context).then(() => {
    isAnswered = true;
  });
  await untilIdle();
  expect(isAnswered).toBe(false);
  writing.resolve();
  await unregistered;
  expect(await adopted).toMatchObject({
    reason: expect.stringMatching(/is being unregistered/),
    isForgotten: true,
  });
  expect([leftovers(), changes, registry.adoption.pending]).toEqual([nothing, [], 0]);
});

test("nobody is told that it is gone before that is written down", async () => {
  const { adopt, registry, journal } = await restart();
  const writing = createDeferred();
  journal.beforeWrite = () => writing.promise;
  const adopted = adopt({}, createDeferred().promise);
  const calls = [registry.unregister("r", context)];
  await untilIdle();
  calls.push(registry.unregister("r", context));
  let isAnswered = false;
  void Promise.race(calls).then(() => {
    isAnswered = true;
  });
  await untilIdle();
  expect([isAnswered, journal.names()]).toEqual([false, ["r"]]);
  writing.resolve();
  await Promise.all(calls);
  await adopted;
  expect(journal.entries).toEqual(["left r"]);
});

test("an unregister while the driver opens it has it closed again", async () => {
  const { adopt, registry, driver, leftovers, changes } = await restart();
  const opening = createDeferred();
  driver.beforeOpen = () => opening.promise;
  const adopted = adopt();
  await untilIdle();
  const calls = [registry.unregister("r", context), registry.unregisterAll(context)];
  const next = registry.register(request("r", driver.allocate(64).handle), context);
  await untilIdle();
  opening.resolve();
  await Promise.all(calls);
  expect(await adopted).toMatchObject({
    reason: expect.stringMatching(/is being unregistered/),
    isForgotten: true,
  });
  expect((await next).generation).toBe(11n);
  await registry.unregister("r", context);
  expect([leftovers(), changes.map(({ kind }) => kind)]).toEqual([nothing, ["registered", "unregistered"]]);
});

test("an unregister as soon as it is there is written down", async () => {
  const { adopt, registry, leftovers } = await restart();
  const gone = registry.waitFor("r", 1000, context).then(() => registry.unregister("r", context));
  expect(await adopt()).toBeNull();
  await gone;
  await untilIdle();
  expect(leftovers()).toEqual(nothing);
});

test.each(["waits for the driver", "is opened"])(
  "a stop while it %s leaves it to the next process",
  async (when) => {
    const { adopt, registry, driver, leftovers, changes } = await restart({ leaseMs: 1000 });
    const opening = createDeferred();
    driver.beforeOpen = () => opening.promise;
    const adopted = adopt({}, when === "is opened" ? usable : createDeferred().promise);
    await untilIdle();
    const closed = registry.close();
    expect(await adopted).toMatchObject({ reason: "Server exiting", isForgotten: false });
    opening.resolve();
    await closed;
    expect([leftovers(), changes]).toEqual([{ ...nothing, written: ["r"] }, []]);
  },
);

test("what is to be taken up once the stop has begun is left to the next process", async () => {
  const { adopt, registry, leftovers } = await restart();
  const closed = registry.close();
  expect((await adopt({}, createDeferred().promise))?.reason).toBe("Server exiting");
  await closed;
  expect(leftovers()).toEqual({ ...nothing, written: ["r"] });
});

test("a name that another has already stays the other's", async () => {
  const { adopt, registry, driver, journal } = await restart();
  const { generation } = await registry.register(request("r", driver.allocate(64).handle), context);
  expect((await adopt())?.reason).toMatch(/already in manager/);
  expect(registry.status("r").generation).toBe(generation);
  expect([...journal.records.keys()]).toEqual([generation]);
  await registry.unregister("r", context);
});

test("more regions than there may be are left to a later start", async () => {
  const { adopt, registry, driver, journal } = await restart({}, { limits: { maxRegions: 1 } });
  await registry.register(request("s", driver.allocate(64).handle), context);
  expect((await adopt())?.reason).toMatch(/--max-regions/);
  expect([journal.names(), registry.adoption.pending]).toEqual([["r", "s"], 0]);
});

test("a region whose session could not outlive the process is refused", async () => {
  const { adopt, leftovers } = await restart({}, { session: 0 });
  expect((await adopt())?.reason).toBe("its session ended with the service");
  expect(leftovers()).toEqual(nothing);
});

test("a region lives on with its session, which can be resumed in its grace", async () => {
  const { adopt, registry, hold, states, clock } = await restart({}, { session: 10_000 });
  expect(await adopt()).toBeNull();
  clock.advance(9999);
  registry.sessions.resume(hold?.secret ?? "", { owner: "anonymous", isAdmin: false, session: null });
  clock.advance(60_000);
  await untilIdle();
  expect(states()).toEqual(["r ready"]);
});

test("a region goes with its session if nobody resumes that in its grace", async () => {
  const { adopt, clock, leftovers } = await restart({}, { session: 10_000 });
  expect(await adopt()).toBeNull();
  clock.advance(10_000);
  await untilIdle();
  expect(leftovers()).toEqual(nothing);
});

test("a session whose grace is over while its region waits for the driver takes that along", async () => {
  const { adopt, registry, clock, leftovers } = await restart({}, { session: 10_000 });
  const adopted = adopt({}, createDeferred().promise);
  clock.advance(10_000);
  expect((await adopted)?.reason).toMatch(/its session has ended/);
  await untilIdle();
  expect([leftovers(), registry.adoption.pending]).toEqual([nothing, 0]);
});

test("an exporter that exits while its region is taken up makes an orphan of it", async () => {
  const { adopt, driver, exporters, exporter, states, clock, leftovers } = await restart();
  driver.beforeOpen = () => exporters.exit(exporter);
  expect(await adopt()).toBeNull();
  expect(states()).toEqual(["r orphaned"]);
  clock.advance(30_000);
  await untilIdle();
  expect(leftovers()).toEqual(nothing);
});

test("what an observer refuses is left to a later start", async () => {
  const { adopt, leftovers } = await restart(
    {},
    {
      observers: [
        ({ kind }) => {
          if (kind === "adopted") throw new Error("no");
        },
      ],
    },
  );
  expect((await adopt())?.reason).toMatch(/internal error/);
  expect(leftovers()).toEqual({ ...nothing, written: ["r"] });
});

test("a hundred regions are opened 64 at a time", async () => {
  const { adopt, driver, registry } = await restart();
  const opening = createDeferred();
  driver.beforeOpen = () => opening.promise;
  const all = Array.from({ length: 100 }, (_, index) => {
    const { handle } = driver.allocate(4096);
    return adopt({ name: `r${index}`, generation: BigInt(index), handle });
  });
  await untilIdle();
  expect([driver.openCalls, registry.adoption.pending]).toEqual([64, 100]);
  opening.resolve();
  expect(await Promise.all(all)).toEqual(Array(100).fill(null));
});
