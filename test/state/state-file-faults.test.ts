import { expect, test } from "vitest";
import type { RegistryError } from "../../src/core/errors.js";
import type { StateFile } from "../../src/state/state-file.js";
import { createDeferred } from "../helpers/deferred.js";
import { expectRejection } from "../helpers/registry-harness.js";
import { type FileCall, hookedFiles, systemError } from "./fault-files.js";
import { MemoryDisk } from "./memory-disk.js";
import { generationsIn, openState, problemOf, recordOf } from "./records.js";

/** A state file with regions 1 to 4 on a disk whose calls fail as `fault` says. */
async function setUp(hooks: { maxWrite?: number } = {}) {
  const disk = new MemoryDisk();
  let fault: (call: FileCall) => void = () => {};
  const fileSystem = hookedFiles({ ...hooks, before: (call) => fault(call) }, disk);
  const { file } = await openState(disk.path, { fileSystem });
  for (const generation of [1, 2, 3, 4]) await file.registered(recordOf(generation));
  return {
    disk,
    file,
    failWhen: (next: (call: FileCall) => void) => {
      fault = next;
    },
    /** What a start finds if the service is killed now. */
    afterKill: () => {
      const copy = MemoryDisk.with(disk.bytes);
      return generationsIn(copy.path, { fileSystem: copy });
    },
  };
}

/** Fails the `nth` of the calls with that name, from 0, and those after it up to `times`. */
function failNth(name: FileCall["name"], nth: number, code: string, times = 1): (call: FileCall) => void {
  let count = 0;
  return (call) => {
    if (call.name !== name) return;
    const index = count++;
    if (index >= nth && index < nth + times) throw systemError(code);
  };
}

/** Asks for a burst of changes; answers which were acknowledged. The burst leaves 1, adds 5, 6 and 7 and replaces 2 by 8. */
async function burst(file: StateFile): Promise<{ acknowledged: number; refusals: RegistryError[] }> {
  const outcomes = await Promise.allSettled([
    file.left(1n),
    file.registered(recordOf(5)),
    file.registered(recordOf(6)),
    file.registered(recordOf(7)),
    file.registered(recordOf(8), 2n),
  ]);
  const refusals = outcomes.flatMap((outcome) =>
    outcome.status === "rejected" ? [outcome.reason as RegistryError] : [],
  );
  return { acknowledged: outcomes.length - refusals.length, refusals };
}

const before = [1, 2, 3, 4];
const after = [3, 4, 5, 6, 7, 8];

test.each(["ENOSPC", "EIO", "EBADF", "EROFS", "EDQUOT"])(
  "after %s at any write of a burst none of it is there, and the same again is taken",
  async (code) => {
    let failures = 0;
    for (let nth = 0; nth < 200; nth++) {
      const { file, failWhen, afterKill } = await setUp({ maxWrite: 20 });
      failWhen(failNth("write", nth, code));
      const { acknowledged, refusals } = await burst(file);
      if (acknowledged > 0) {
        expect([acknowledged, failures]).toEqual([5, nth]);
        expect(failures).toBeGreaterThan(20);
        return;
      }
      failures++;
      for (const refusal of refusals) {
        expect([refusal.code, refusal.message]).toEqual([
          "UNAVAILABLE",
          `the state file cannot be written: ${code}`,
        ]);
        expect(refusal.cause).toMatchObject({ code });
      }
      expect(await afterKill()).toEqual(before);
      expect(await burst(file)).toMatchObject({ acknowledged: 5 });
      await file.close();
      expect(await afterKill()).toEqual(after);
    }
    expect.fail("a write fails each time");
  },
);

test("after a sync that failed the file is written anew, since the kernel no longer tells what is on the disk", async () => {
  const { file, failWhen, afterKill } = await setUp();
  const calls: string[] = [];
  const fail = failNth("datasync", 0, "EIO");
  failWhen((call) => {
    calls.push(call.name);
    fail(call);
  });
  expect(await burst(file)).toMatchObject({ acknowledged: 0 });
  expect(calls).toEqual(expect.arrayContaining(["rename", "sync"]));
  expect(await afterKill()).toEqual(before);
  expect(await burst(file)).toMatchObject({ acknowledged: 5 });
  expect(await afterKill()).toEqual(after);
});

test.each(["open", "unlink", "write", "chmod", "sync", "rename"] as const)(
  "while the file cannot be mended for %s everything is refused, and each call tries again",
  async (name) => {
    const { disk, file, failWhen, afterKill } = await setUp();
    let isBroken = true;
    let tries = 0;
    failWhen((call) => {
      if (!isBroken || (call.name !== "datasync" && call.name !== name)) return;
      if (call.name === name) tries++;
      throw systemError("EIO");
    });
    for (let round = 1; round <= 3; round++) {
      const triesBefore = tries;
      await expectRejection(file.left(1n), "UNAVAILABLE", "the state file cannot be written: EIO");
      expect(await afterKill()).toEqual(before);
      // A new file that came to nothing would fill the disk, and has every handle in it.
      if (name !== "unlink") expect(disk.paths).toEqual([disk.path]);
      expect(tries).toBeGreaterThan(triesBefore);
    }
    isBroken = false;
    await file.registered(recordOf(9));
    await file.close();
    expect(await afterKill()).toEqual([...before, 9]);
  },
);

test("on a disk that stays full what was refused is taken out all the same, and what there is room for is taken", async () => {
  const { file, failWhen, afterKill } = await setUp({ maxWrite: 50 });
  let room = 500;
  failWhen(({ name }) => {
    if (name !== "write") return;
    if (room < 50) throw systemError("ENOSPC");
    room -= 50;
  });
  expect(await burst(file)).toMatchObject({ acknowledged: 0 });
  expect(await afterKill()).toEqual(before);
  room = 100;
  await file.left(1n);
  expect(await afterKill()).toEqual([2, 3, 4]);
});

test("a refused change that could not be taken out is taken out when the service stops", async () => {
  const { file, failWhen, afterKill } = await setUp();
  failWhen(({ name }) => {
    if (name === "datasync" || name === "open" || name === "truncate") throw systemError("EIO");
  });
  expect(await burst(file)).toMatchObject({ acknowledged: 0 });
  failWhen(() => {});
  await file.close();
  expect(await afterKill()).toEqual(before);
});

test("a region whose renewal was refused is as it was before", async () => {
  const { disk, file, failWhen } = await setUp();
  failWhen(failNth("write", 0, "ENOSPC"));
  await expectRejection(
    file.registered(recordOf(3, { leaseMs: 5000 })),
    "UNAVAILABLE",
    "the state file cannot be written: ENOSPC",
  );
  await file.close();
  const { records } = await openState(disk.path, { fileSystem: disk });
  expect(records.map(({ leaseMs }) => leaseMs)).toEqual([null, null, null, null]);
});

test("a generation that was refused is not given again", async () => {
  const { disk, file, failWhen } = await setUp();
  failWhen(failNth("datasync", 0, "EIO"));
  await expectRejection(file.registered(recordOf(77)), "UNAVAILABLE", /EIO$/);
  await file.close();
  expect((await openState(disk.path, { fileSystem: disk })).lastGeneration).toBe(77n);
});

test("what waits behind a write that fails is not refused with it", async () => {
  const { file, failWhen, afterKill } = await setUp();
  const writing = createDeferred();
  failWhen(({ name }) => {
    if (name !== "write") return;
    failWhen(() => {});
    writing.resolve();
    throw systemError("ENOSPC");
  });
  const first = expectRejection(file.registered(recordOf(5)), "UNAVAILABLE", /ENOSPC$/);
  await writing.promise;
  await file.registered(recordOf(6));
  await first;
  expect(await afterKill()).toEqual([...before, 6]);
});

test("a write that takes nothing is a failure, not an endless loop", async () => {
  const disk = new MemoryDisk();
  const fileSystem = hookedFiles({ maxWrite: 0 }, disk);
  expect(await problemOf(disk.path, { fileSystem })).toBe("a write took none of its bytes");
});

test("a change whose revision cannot be set apart is refused, and the one after it tries again", async () => {
  const { file, failWhen } = await setUp();
  failWhen(failNth("write", 0, "ENOSPC", 2));
  expect(file.observe({ revision: 600_000n })).toBeUndefined();
  await expectRejection(Promise.resolve(file.observe({ revision: 1_000_001n })), "UNAVAILABLE", /ENOSPC$/);
  await expectRejection(Promise.resolve(file.observe({ revision: 1_000_001n })), "UNAVAILABLE", /ENOSPC$/);
  await file.observe({ revision: 1_000_001n });
  expect(file.observe({ revision: 1_000_002n })).toBeUndefined();
  await file.close();
});
