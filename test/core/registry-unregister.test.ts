import { expect, test } from "vitest";
import { RegistryError } from "../../src/core/errors.js";
import { createDeferred } from "../helpers/deferred.js";
import { driverError } from "../helpers/fake-driver.js";
import {
  context,
  createHarness,
  expectRejection,
  rejection,
  request,
  untilIdle,
} from "../helpers/registry-harness.js";

const refusal = "failed to close CUDA IPC handle: CUDA_ERROR_INVALID_VALUE (1): hint for 1";

function refuseCloses() {
  throw driverError(1, "CUDA_ERROR_INVALID_VALUE", "cuIpcCloseMemHandle");
}

test.each(["unknown", "", "..", "__proto__", "\ud800"])(
  "unregister of %j, which is no region, does nothing",
  async (name) => {
    const { registry, changes } = createHarness();
    await registry.unregister(name, context);
    expect([registry.revision, changes]).toEqual([0n, []]);
  },
);

test("unregister of a pending name waits for it, then unregisters it", async () => {
  const { driver, registry, kinds } = createHarness();
  const gate = createDeferred();
  driver.beforeOpen = () => gate.promise;
  const registered = registry.register(request("r", driver.allocate(64).handle), context);
  let done = false;
  const unregistered = registry.unregister("r", context).then(() => {
    done = true;
  });
  await untilIdle();
  expect(done).toBe(false);
  gate.resolve();
  expect((await registered).state).toBe("ready");
  await unregistered;
  expect(kinds()).toEqual(["registered r", "unregistered r"]);
  expect([driver.opens, driver.closes, registry.statuses()]).toEqual([1, 1, []]);
});

test("unregister of a pending name whose register fails succeeds", async () => {
  const { driver, registry } = createHarness();
  const gate = createDeferred();
  driver.beforeOpen = () => gate.promise;
  const registered = rejection(registry.register(request("r", driver.allocate(64).handle), context));
  const unregistered = registry.unregister("r", context);
  gate.reject(driverError(1, "CUDA_ERROR_INVALID_VALUE"));
  await unregistered;
  expect((await registered).code).toBe("INVALID_ARGUMENT");
});

test("concurrent unregisters of one region close it once and all succeed", async () => {
  const { driver, registry, kinds } = createHarness();
  await registry.register(request("r", driver.allocate(64).handle), context);
  const gate = createDeferred();
  driver.beforeClose = () => gate.promise;
  const all = Array.from({ length: 5 }, () => registry.unregister("r", context));
  await untilIdle();
  expect(registry.status("r").state).toBe("ready");
  expect(() => registry.pin("r", null, context)).toThrow("Unable to find cuda shared memory region: 'r'");
  await expectRejection(
    registry.register(request("r", driver.allocate(64).handle), context),
    "ALREADY_EXISTS",
    "shared memory region 'r' already in manager",
  );
  gate.resolve();
  await Promise.all(all);
  expect([driver.closeCalls, kinds()]).toEqual([1, ["registered r", "unregistered r"]]);
});

test("a slow close delays nobody else", async () => {
  const { driver, registry, names } = createHarness();
  await registry.register(request("slow", driver.allocate(64).handle), context);
  await registry.register(request("quick", driver.allocate(64).handle), context);
  const gate = createDeferred();
  driver.beforeClose = () => gate.promise;
  const leaving = registry.unregister("slow", context);
  await untilIdle();
  driver.beforeClose = undefined;
  await registry.unregister("quick", context);
  expect(names()).toEqual(["slow"]);
  gate.resolve();
  await leaving;
  expect(names()).toEqual([]);
});

test("a close that fails keeps the region, says why, and is tried again by the next unregister", async () => {
  const { driver, registry, changes, kinds } = createHarness();
  const { handle } = driver.allocate(64);
  await registry.register(request("r", handle), context);
  driver.beforeClose = refuseCloses;

  const error = await expectRejection(registry.unregister("r", context), "INTERNAL", refusal);
  expect(error.driver?.cudaCode).toBe(1);
  expect(registry.status("r").state).toBe("close_failed");
  expect(registry.statuses()).toEqual([registry.status("r")]);
  expect([registry.mappings, driver.openMappings]).toEqual([1, 1]);
  expect(changes.at(-1)).toMatchObject({ kind: "close_failed", cause: { cudaCode: 1 }, revision: 2n });
  await expectRejection(
    registry.register(request("r", driver.allocate(64).handle), context),
    "ALREADY_EXISTS",
    "shared memory region 'r' already in manager",
  );

  await expectRejection(registry.unregister("r", context), "INTERNAL", refusal);
  driver.beforeClose = undefined;
  await registry.unregister("r", context);
  expect(kinds()).toEqual(["registered r", "close_failed r", "close_failed r", "unregistered r"]);
  expect([driver.closes, driver.closeCalls, registry.mappings, registry.statuses()]).toEqual([1, 3, 0, []]);
});

test("the handle of a region that could not be closed is refused under other names until it is closed", async () => {
  const { driver, registry } = createHarness();
  const { handle } = driver.allocate(64);
  await registry.register(request("r", handle), context);
  driver.beforeClose = refuseCloses;
  await rejection(registry.unregister("r", context));
  // The caller may know nothing of the other region, and learns no more than that there was one.
  await expectRejection(
    registry.register(request("other", handle), context),
    "INVALID_ARGUMENT",
    "failed to register shared memory region 'other': invalid args: an earlier mapping of this handle could not be closed; unregister its region again, or export the memory anew",
  );
  expect(driver.openCalls).toBe(1);
  driver.beforeClose = undefined;
  await registry.unregister("r", context);
  await registry.register(request("other", handle), context);
  expect(registry.mappings).toBe(1);
});

test("a region that could not be closed cannot be pinned", async () => {
  const { driver, registry } = createHarness();
  await registry.register(request("r", driver.allocate(64).handle), context);
  driver.beforeClose = refuseCloses;
  await rejection(registry.unregister("r", context));
  expect(() => registry.pin("r", null, context)).toThrow(
    expect.objectContaining({
      code: "FAILED_PRECONDITION",
      message: "shared memory region 'r' was unregistered and could not be closed; unregister it again",
    }),
  );
});

test.each([700, 719, 999])("after the sticky fault %d no close is tried again", async (code) => {
  const { driver, registry } = createHarness();
  await registry.register(request("r", driver.allocate(64).handle), context);
  driver.beforeClose = () => {
    throw driverError(code, "CUDA_ERROR_STICKY", "cuIpcCloseMemHandle");
  };
  const text = `failed to close CUDA IPC handle: CUDA_ERROR_STICKY (${code}): hint for ${code}`;
  await expectRejection(registry.unregister("r", context), "INTERNAL", text);
  driver.beforeClose = undefined;
  await expectRejection(registry.unregister("r", context), "INTERNAL", text);
  expect([driver.closeCalls, registry.status("r").state]).toEqual([1, "close_failed"]);
});

test("a driver that says that it is lost is quoted, and not asked again", async () => {
  const { driver, registry } = createHarness();
  await registry.register(request("r", driver.allocate(64).handle), context);
  const refused = { cudaError: "CUDA_ERROR_ILLEGAL_ADDRESS", cudaCode: 700, hint: "restart" };
  driver.beforeClose = () => {
    throw new RegistryError("UNAVAILABLE", "the driver no longer works: restart the service", {
      driver: refused,
    });
  };
  for (let i = 0; i < 2; i++) {
    const error = await expectRejection(
      registry.unregister("r", context),
      "INTERNAL",
      "failed to close CUDA IPC handle: the driver no longer works: restart the service",
    );
    expect(error.driver).toEqual(refused);
  }
  expect(driver.closeCalls).toBe(1);
});

test("a sticky fault met by one region stops the retries of the others", async () => {
  const { driver, registry } = createHarness();
  await registry.register(request("r", driver.allocate(64).handle), context);
  driver.beforeClose = refuseCloses;
  await rejection(registry.unregister("r", context));
  driver.beforeOpen = () => {
    throw driverError(709, "CUDA_ERROR_CONTEXT_IS_DESTROYED");
  };
  await rejection(registry.register(request("s", driver.allocate(64).handle), context));
  driver.beforeClose = undefined;
  await expectRejection(registry.unregister("r", context), "INTERNAL", /CUDA_ERROR_CONTEXT_IS_DESTROYED/);
  expect(driver.closeCalls).toBe(1);
});

test("a close that fails with something unknown shows a fixed text and keeps the cause", async () => {
  const { driver, registry } = createHarness();
  await registry.register(request("r", driver.allocate(64).handle), context);
  const cause = new TypeError("at 0x7f0000000000");
  driver.beforeClose = () => {
    throw cause;
  };
  const error = await expectRejection(
    registry.unregister("r", context),
    "INTERNAL",
    "failed to close CUDA IPC handle: internal error; the cause is in the service's log",
  );
  expect(error.cause).toBe(cause);
});

test("where two names share a mapping, unregistering the first never fails", async () => {
  const { driver, registry } = createHarness();
  const { handle } = driver.allocate(64);
  await registry.register(request("a", handle), context);
  await registry.register(request("b", handle), context);
  driver.beforeClose = refuseCloses;
  await registry.unregister("a", context);
  await expectRejection(registry.unregister("b", context), "INTERNAL", refusal);
});

test("an unregister is carried out whether or not its caller stays", async () => {
  const { driver, registry } = createHarness();
  await registry.register(request("r", driver.allocate(64).handle), context);
  await registry.unregister("r", { ...context, signal: AbortSignal.abort() });
  expect(registry.mappings).toBe(0);
});

test("a name's next life has another generation", async () => {
  const { driver, registry } = createHarness();
  const { handle } = driver.allocate(64);
  const first = await registry.register(request("r", handle), context);
  await registry.unregister("r", context);
  const second = await registry.register(request("r", handle), context);
  expect(second.generation).toBeGreaterThan(first.generation);
});

test("unregister-all closes every region, the pending ones too, and leaves later ones alone", async () => {
  const { driver, registry, names } = createHarness();
  for (const name of ["a", "b", "c"]) {
    await registry.register(request(name, driver.allocate(64).handle), context);
  }
  const gate = createDeferred();
  driver.beforeOpen = () => gate.promise;
  const pending = registry.register(request("pending", driver.allocate(64).handle), context);
  const all = registry.unregisterAll(context);
  driver.beforeOpen = undefined;
  await registry.register(request("later", driver.allocate(64).handle), context);
  await untilIdle();
  expect(names()).toEqual(["later"]);
  gate.resolve();
  await all;
  await pending;
  expect([names(), registry.mappings]).toEqual([["later"], 1]);
});

test("unregister-all closes what is ready without waiting for any number of slow opens", async () => {
  const { driver, registry, names } = createHarness();
  const gate = createDeferred();
  const ready = driver.allocate(100);
  driver.beforeOpen = (_, handle) => (handle === ready.handle ? undefined : gate.promise);
  const pending = Array.from({ length: 70 }, (_, i) =>
    registry.register(request(`slow${i}`, driver.allocate(64).handle), context),
  );
  await registry.register(request("ready", ready.handle), context);
  const all = registry.unregisterAll(context);
  await untilIdle();
  expect([driver.closes, names()]).toEqual([1, []]);
  gate.resolve();
  await Promise.all([all, ...pending]);
  expect([driver.closes, registry.mappings]).toEqual([71, 0]);
});

test("unregister-all of nothing succeeds", async () => {
  const { registry } = createHarness();
  await registry.unregisterAll(context);
});

test("unregister-all closes at most 64 at a time", async () => {
  const { driver, registry } = createHarness();
  for (let i = 0; i < 100; i++) {
    await registry.register(request(`r${i}`, driver.allocate(64).handle), context);
  }
  let [running, most] = [0, 0];
  driver.beforeClose = async () => {
    most = Math.max(most, ++running);
    await untilIdle();
    running--;
  };
  await registry.unregisterAll(context);
  expect([most, driver.closes]).toEqual([64, 100]);
});

test("unregister-all goes on past failures and names those that are left", async () => {
  const { driver, registry, names } = createHarness();
  const handles = new Map<string, unknown>();
  for (const name of ["a", "b", "c", "d"]) {
    const { handle } = driver.allocate(name === "a" || name === "c" ? 100 : 64);
    handles.set(name, handle);
    await registry.register(request(name, handle), context);
  }
  driver.beforeClose = (mapping) => (mapping.byteSize === 100n ? refuseCloses() : undefined);
  const error = await expectRejection(
    registry.unregisterAll(context),
    "INTERNAL",
    "Failed to unregister the following cuda shared memory regions: a ,c ,",
  );
  expect((error.cause as AggregateError).errors.map(({ message }) => message)).toEqual([refusal, refusal]);
  expect(names()).toEqual(["a", "c"]);
  driver.beforeClose = undefined;
  await registry.unregisterAll(context);
  expect([names(), registry.mappings]).toEqual([[], 0]);
});

test("unregister-all names at most 16 regions and a count", async () => {
  const { driver, registry } = createHarness();
  for (let i = 10; i < 30; i++) {
    await registry.register(request(`r${i}`, driver.allocate(64).handle), context);
  }
  driver.beforeClose = refuseCloses;
  const named = Array.from({ length: 16 }, (_, i) => `r${i + 10} ,`).join("");
  await expectRejection(
    registry.unregisterAll(context),
    "INTERNAL",
    `Failed to unregister the following cuda shared memory regions: ${named} and 4 more`,
  );
});

test("unregister-all's text fits a header however long the names are", async () => {
  const { driver, registry } = createHarness();
  for (let i = 10; i < 30; i++) {
    await registry.register(request(`${i}${"é".repeat(500)}`, driver.allocate(64).handle), context);
  }
  driver.beforeClose = refuseCloses;
  const { message } = await rejection(registry.unregisterAll(context));
  expect(encodeURIComponent(message).length).toBeLessThan(8 * 1024);
  expect(message).toMatch(/^Failed to unregister .*10é+ ,11é+ , and 18 more$/);
});
