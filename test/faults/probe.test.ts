import { expect, test } from "vitest";
import { FaultyDriver } from "./faulty-driver.js";

const contexts = ["cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2"] as const;

/** What a probe comes to whose call is refused: nothing of these, and the rest is told. */
const unheard: readonly string[] = ["cuCtxPopCurrent_v2", contexts[1]];

test.each([
  [1, "CUDA_ERROR_INVALID_VALUE (1)"],
  [2, "CUDA_ERROR_OUT_OF_MEMORY (2)"],
])("a driver that refuses any call of a probe with %d is unusable until the next", async (result, text) => {
  using faulty = await FaultyDriver.start();
  const { driver } = faulty;
  faulty.newCalls();
  await driver.probe([0]);
  const calls = faulty.newCalls().each();
  expect(calls.map(({ name }) => name)).toContain("cuMemGetInfo_v2");
  const problems: string[] = [];
  for (const call of calls) {
    faulty.refuse(call, result);
    const told = await driver.probe([0]).then(
      () => "",
      (error: Error) => error.message,
    );
    const { health } = driver;
    const isUnheard = unheard.includes(call.name);
    const isTold = told.includes(text) && health.state === "unusable" && health.reason === told;
    if (!(isUnheard ? told === "" && health.state === "usable" : isTold)) {
      problems.push(`${call.name}@${call.k} is told as '${told}', ${health.state}`);
    }
    faulty.heal();
    await driver.probe([0]);
    expect(driver.health).toEqual({ state: "usable" });
  }
  const all = faulty.allCalls();
  expect([problems, all.count(contexts[0]) - all.count(contexts[1])]).toEqual([[], 0]);
});

test("a driver that is lost at any call of a probe is known to be lost by the next", async () => {
  using healthy = await FaultyDriver.start();
  healthy.newCalls();
  await healthy.driver.probe([0]);
  const problems: string[] = [];
  for (const call of healthy.newCalls().each()) {
    using faulty = await FaultyDriver.start();
    faulty.refuse(call, 719);
    await faulty.driver.probe([0]).catch(() => {});
    faulty.heal();
    await faulty.driver.probe([0]).catch(() => {});
    const { health } = faulty.driver;
    const isLost = health.state === "unusable" && health.lost === true;
    if (!isLost || !health.reason.includes("CUDA_ERROR_LAUNCH_FAILED (719): restart the service")) {
      problems.push(`${call.name}@${call.k}: ${JSON.stringify(health)}`);
    }
  }
  expect(problems).toEqual([]);
});
