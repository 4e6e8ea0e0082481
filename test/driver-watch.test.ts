import { expect, test } from "vitest";
import type { DriverHealth } from "../src/core/driver.js";
import { DriverWatch } from "../src/driver-watch.js";
import { createLog } from "../src/log.js";
import type { SelectedDriver } from "../src/native/driver-selection.js";

function watched() {
  const lines: Record<string, unknown>[] = [];
  const log = createLog("info", { write: (line: string) => void lines.push(JSON.parse(line)) });
  const driver = {
    health: { state: "starting" } as DriverHealth,
    kind: null as SelectedDriver["kind"],
    description: null,
    looks: 0,
    /** What the next look finds. */
    finds: { state: "starting" } as DriverHealth,
    devices: async () => {
      driver.looks++;
      driver.health = driver.finds;
      if (driver.finds.state !== "usable") throw new Error("none");
      return [];
    },
    probes: [] as (readonly number[])[],
    answerProbe: (): Promise<void> => Promise.resolve(),
    probe: (inUse: readonly number[]) => {
      driver.probes.push(inUse);
      return driver.answerProbe();
    },
  };
  const clock = { now: 0 };
  const watch = new DriverWatch(driver as unknown as SelectedDriver, log, {
    livenessGraceMs: 30_000,
    now: () => clock.now,
  });
  const told = () =>
    lines.map(({ level, reason, msg }) => ({ level, reason, msg: String(msg).slice(0, 22) }));
  return { driver, watch, told, clock };
}

const lost = { state: "unusable", reason: "no libcuda" } as const;

test("a driver that turns up is told once, and not looked for any more", async () => {
  const { driver, watch, told } = watched();
  driver.finds = { state: "usable" };
  expect(watch.readiness()).toBe("not_ready");
  await Promise.resolve();
  await Promise.resolve();
  expect(told()).toEqual([{ level: 30, msg: "CUDA driver is usable" }]);
  expect([watch.readiness(), watch.readiness()]).toEqual(["ready", "ready"]);
  expect(driver.looks).toBe(1);
  expect(told()).toHaveLength(1);
});

test("a driver that is missing is told once with the reason, however often it is looked for", async () => {
  const { driver, watch, told } = watched();
  driver.finds = lost;
  for (let i = 0; i < 3; i++) {
    expect(watch.readiness()).toBe("not_ready");
    await Promise.resolve();
    await Promise.resolve();
  }
  expect(driver.looks).toBe(3);
  expect(told()).toEqual([{ level: 40, reason: "no libcuda", msg: "no usable CUDA driver:" }]);
});

test("a driver that is lost, and found again, is told each time", async () => {
  const { driver, watch, told } = watched();
  driver.health = { state: "usable" };
  expect(watch.readiness()).toBe("ready");
  driver.health = lost;
  driver.finds = { state: "usable" };
  expect(watch.readiness()).toBe("not_ready");
  await Promise.resolve();
  await Promise.resolve();
  expect(watch.readiness()).toBe("ready");
  expect(told().map((line) => line.level)).toEqual([30, 40, 30]);
});

test("the description is the driver's kind, or why there is none", () => {
  const { driver, watch } = watched();
  expect(watch.describe()).toBe("starting");
  driver.health = lost;
  expect(watch.describe()).toBe("unavailable: no libcuda");
  driver.health = { state: "usable" };
  driver.kind = "emulated";
  expect(watch.describe()).toBe("emulated");
});

const fatal = { state: "unusable", reason: "CUDA_ERROR_ILLEGAL_ADDRESS", lost: true } as const;

test("a driver lost to this process turns ready off at once, and live off after the grace and for good", () => {
  const { driver, watch, told, clock } = watched();
  driver.health = { state: "usable" };
  expect([watch.readiness(), watch.isLive()]).toEqual(["ready", true]);
  clock.now = 5000;
  driver.health = fatal;
  driver.finds = fatal;
  expect([watch.readiness(), watch.isLive()]).toEqual(["not_ready", true]);
  clock.now = 34_999;
  expect(watch.isLive()).toBe(true);
  clock.now = 35_000;
  expect([watch.readiness(), watch.isLive()]).toEqual(["not_ready", false]);
  clock.now = 90_000;
  expect(watch.isLive()).toBe(false);
  expect(told().map(({ level }) => level)).toEqual([30, 40, 50]);
});

test("a driver that may come back never ends liveness", () => {
  const { driver, watch, clock } = watched();
  driver.health = lost;
  driver.finds = lost;
  expect(watch.isLive()).toBe(true);
  clock.now = 10_000_000;
  expect([watch.readiness(), watch.isLive()]).toEqual(["not_ready", true]);
});

test("a probe that finds the driver lost is told, and counts towards the grace, with nobody asking", async () => {
  const { driver, watch, told, clock } = watched();
  driver.health = { state: "usable" };
  watch.readiness();
  driver.answerProbe = async () => {
    driver.health = fatal;
    throw new Error("lost");
  };
  await watch.probe([0, 1]);
  expect(driver.probes).toEqual([[0, 1]]);
  expect(told().map(({ level, reason }) => [level, reason])).toEqual([
    [30, undefined],
    [40, "CUDA_ERROR_ILLEGAL_ADDRESS"],
  ]);
  clock.now = 30_000;
  expect(watch.isLive()).toBe(false);
});

test("while a probe is not answered there is no other, and afterwards there is", async () => {
  const { driver, watch } = watched();
  let answer = () => {};
  driver.answerProbe = () =>
    new Promise((resolve) => {
      answer = resolve;
    });
  const first = watch.probe([0]);
  await watch.probe([0]);
  expect(driver.probes).toHaveLength(1);
  answer();
  await first;
  void watch.probe([0]);
  expect(driver.probes).toHaveLength(2);
});
