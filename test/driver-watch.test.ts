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
  };
  const watch = new DriverWatch(driver as unknown as SelectedDriver, log);
  const told = () =>
    lines.map(({ level, reason, msg }) => ({ level, reason, msg: String(msg).slice(0, 22) }));
  return { driver, watch, told };
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
