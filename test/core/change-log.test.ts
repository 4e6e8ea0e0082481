import { expect, test } from "vitest";
import { ChangeLog, type PendingChange } from "../../src/core/change-log.js";
import type { RegistryChange, RegistryObserver } from "../../src/core/region.js";
import { createDeferred } from "../helpers/deferred.js";
import { untilIdle } from "../helpers/registry-harness.js";

function pendingChange(
  name: string,
  applied: string[] = [],
  fields: Partial<PendingChange> = {},
): PendingChange {
  return {
    revocable: true,
    describe: (revision) => ({ kind: "registered", region: { name }, revision }) as unknown as RegistryChange,
    apply: () => applied.push(name),
    ...fields,
  };
}

test("with observers that return nothing a change is done when commit returns", () => {
  const told: bigint[] = [];
  const log = new ChangeLog([({ revision }) => void told.push(revision)]);
  const applied: string[] = [];
  expect(log.commit(pendingChange("a", applied))).not.toBeInstanceOf(Promise);
  expect(log.commit(pendingChange("b", applied))).not.toBeInstanceOf(Promise);
  expect([told, applied, log.revision]).toEqual([[1n, 2n], ["a", "b"], 2n]);
});

test("a change called off is told to nobody and takes no number", () => {
  const log = new ChangeLog([() => expect.fail("told")]);
  expect(log.commit(pendingChange("a", [], { describe: () => null }))).toEqual({
    change: null,
    refusal: null,
  });
  expect(log.revision).toBe(0n);
});

test("a refused change is not applied if it is revocable, else it is; every observer was told all the same", async () => {
  for (const revocable of [true, false]) {
    const told: string[] = [];
    const observers: RegistryObserver[] = [
      () => Promise.reject(new Error("first")),
      () => {
        throw new Error("second");
      },
      () => void told.push("third"),
    ];
    const log = new ChangeLog(observers);
    const applied: string[] = [];
    const { refusal } = await log.commit(pendingChange("a", applied, { revocable }));
    expect([refusal, told, applied]).toEqual([
      { error: new Error("first") },
      ["third"],
      revocable ? [] : ["a"],
    ]);
    expect(log.revision).toBe(1n);
  }
});

test("a thousand changes behind a slow observer are told in the order in which they came", async () => {
  const gate = createDeferred();
  const told: bigint[] = [];
  const log = new ChangeLog([
    ({ revision }) => {
      told.push(revision);
      return revision === 1n ? gate.promise : undefined;
    },
  ]);
  const applied: string[] = [];
  const commits = Array.from({ length: 1000 }, (_, i) => log.commit(pendingChange(`r${i}`, applied)));
  expect([told, applied]).toEqual([[1n], []]);
  gate.resolve();
  await Promise.all(commits);
  expect(told).toEqual(Array.from({ length: 1000 }, (_, i) => BigInt(i + 1)));
  expect(applied).toEqual(Array.from({ length: 1000 }, (_, i) => `r${i}`));
});

test("whoever waits for the next change wakes once it is visible", async () => {
  const log = new ChangeLog([]);
  const applied: string[] = [];
  const woken = log.next().then(() => [...applied]);
  await log.commit(pendingChange("a", applied));
  expect(await woken).toEqual(["a"]);
});

test("whoever no longer waits for the next change is not woken", async () => {
  const log = new ChangeLog([]);
  const woken: string[] = [];
  const stop = log.onNext(() => woken.push("stopped"));
  log.onNext(() => woken.push("waiting"));
  stop();
  await log.commit(pendingChange("a"));
  await log.commit(pendingChange("b"));
  expect(woken).toEqual(["waiting"]);
});

test("a change that comes while an earlier one is told, after others were done, waits as well", async () => {
  const gates = [createDeferred(), createDeferred(), createDeferred()];
  const told: bigint[] = [];
  const log = new ChangeLog([
    ({ revision }) => {
      told.push(revision);
      return gates[Number(revision) - 1]?.promise;
    },
  ]);
  const first = log.commit(pendingChange("a"));
  const second = log.commit(pendingChange("b"));
  gates[0]?.resolve();
  await first;
  await untilIdle();
  const third = log.commit(pendingChange("c"));
  await untilIdle();
  expect(told).toEqual([1n, 2n]);
  for (const gate of gates) gate.resolve();
  await Promise.all([second, third]);
  expect(told).toEqual([1n, 2n, 3n]);
});

test("a change made by an observer comes after the one that it is being told", async () => {
  const applied: string[] = [];
  const nested: unknown[] = [];
  const log: ChangeLog = new ChangeLog([
    ({ revision }) => {
      if (revision === 1n) nested.push(log.commit(pendingChange("inner", applied)));
    },
  ]);
  await log.commit(pendingChange("outer", applied));
  await Promise.all(nested);
  expect([applied, log.revision]).toEqual([["outer", "inner"], 2n]);
});
