import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { RegionRegistry } from "../src/core/registry.js";
import { createFaceContext } from "../src/create-face-context.js";
import { createCudaDriver } from "../src/native/driver-selection.js";
import { FakeDriver } from "./helpers/fake-driver.js";

function parts(driver = new FakeDriver()) {
  return { driver, registry: new RegionRegistry({ driver }) };
}

test("left alone, a context allows registers and tells this package's name and version", () => {
  const { version } = JSON.parse(readFileSync("package.json", "utf8"));
  const context = createFaceContext(parts());
  expect(context.allowClientShm).toBe(true);
  expect(context.info).toEqual({
    name: "cudashm",
    version,
    extensions: ["cuda_shared_memory"],
    instanceId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    epoch: 1n,
  });
  expect(context.shutdown.aborted).toBe(false);
  expect(context.nextRequestId()).not.toBe(context.nextRequestId());
});

test("what is given takes the place of a default", () => {
  const info = { name: "mine", version: "7", extensions: [], instanceId: "i", epoch: 3n };
  const context = createFaceContext({ ...parts(), info, allowClientShm: false, readiness: () => "exiting" });
  expect(context).toMatchObject({ info, allowClientShm: false });
  expect(context.readiness()).toBe("exiting");
});

test("a context is ready while the driver is usable and its servers are not on their way down", () => {
  const shutdown = new AbortController();
  const context = createFaceContext({ ...parts(), shutdown: shutdown.signal });
  expect([context.readiness(), context.cudaDriver()]).toEqual(["ready", "emulated"]);
  shutdown.abort();
  expect(context.readiness()).toBe("exiting");
});

test("asking a driver that nobody started makes it start", async () => {
  const driver = createCudaDriver({ preference: "emulated", contextLingerMs: 0 });
  const context = createFaceContext({ driver, registry: new RegionRegistry({ driver }) });
  expect([context.readiness(), context.cudaDriver()]).toEqual(["not_ready", "starting"]);
  await driver.devices();
  expect([context.readiness(), context.cudaDriver()]).toEqual(["ready", "emulated"]);
});

test("a driver that cannot be had is told as not ready, and no rejection is left over", async () => {
  const driver = createCudaDriver({ preference: "cuda", libraryPath: "/nowhere", contextLingerMs: 0 });
  const context = createFaceContext({ driver, registry: new RegionRegistry({ driver }) });
  expect(context.readiness()).toBe("not_ready");
  await expect(driver.devices()).rejects.toMatchObject({ code: "UNAVAILABLE" });
  expect([context.readiness(), context.cudaDriver()]).toEqual(["not_ready", "unusable"]);
});
