import { describe, expect, test } from "vitest";
import { RegistryError } from "../../src/core/errors.js";
import type { Exporter } from "../../src/core/exporter.js";
import { createDeferred } from "../helpers/deferred.js";
import { FakeClock } from "../helpers/fake-clock.js";
import { context } from "../helpers/registry-harness.js";
import { addressOf, createCaller, createTestFace, startServer } from "./harness.js";
import { createRegistryClient } from "./registry-client.js";

async function start(options: Parameters<typeof createTestFace>[0] = {}) {
  const face = createTestFace(options);
  const address = addressOf(await startServer(face));
  return { face, address, ...createRegistryClient(address) };
}

const exporter = {
  pid: 4711,
  start_time: "18446744073709551615",
  boot_id: "3d1ad3a4-6d5c-4c0e-9f0e-0f9f1d6f2a11",
  pid_namespace: "4026531836",
};

function refused(code: string, text: string | RegExp) {
  return { code, text: typeof text === "string" ? text : expect.stringMatching(text) };
}

const begun = Date.UTC(2030, 0, 1) / 1000;

describe("Register", () => {
  test("shows all there is to know of the region", async () => {
    const watched: Exporter[] = [];
    const exporters = {
      watch: async (each: Exporter) => {
        watched.push(each);
        return () => {};
      },
    };
    const { face, call } = await start({ registry: { clock: new FakeClock(), exporters } });
    const { code, response } = await call("Register", {
      ...face.goodRegister,
      device_uuid: "GPU-00000000-0000-0000-0000-000000000000",
      offset: "4032",
      lease: { seconds: 61, nanos: 500_000_001 },
      exporter,
      labels: { app: "trainer", "a/b.c-d": "\u00e9" },
    });
    expect(code).toBe("OK");
    expect(response).toEqual({
      name: "r",
      kind: "cuda",
      state: "REGION_STATE_READY",
      reason: "REASON_REQUESTED",
      device_id: "0",
      device_uuid: "GPU-00000000-0000-0000-0000-000000000000",
      byte_size: "64",
      offset: "4032",
      allocation_byte_size: "4096",
      owner: "anonymous",
      session: "",
      protocol: "grpc",
      registered_at: { seconds: String(begun), nanos: 0 },
      last_used_at: null,
      lease: { seconds: "61", nanos: 501_000_000 },
      lease_expires_at: { seconds: String(begun + 61), nanos: 501_000_000 },
      pins: "0",
      generation: "1",
      fingerprint: expect.stringMatching(/^[0-9a-f]{16}$/),
      labels: { app: "trainer", "a/b.c-d": "\u00e9" },
      exporter,
      verified: true,
    });
    expect(watched).toEqual([
      { pid: 4711, startTime: 2n ** 64n - 1n, bootId: exporter.boot_id, pidNamespace: 4026531836n },
    ]);
    expect((await call("Get", { name: "r" })).response).toEqual(response);
    expect((await call("List")).response.regions).toEqual([response]);
  });

  test("takes a device by its UUID alone", async () => {
    const { face, call } = await start();
    const { device_id: _, ...rest } = face.goodRegister;
    const uuid = (ordinal: number) => ({ device_uuid: `GPU-00000000-0000-0000-0000-00000000000${ordinal}` });
    expect((await call("Register", { ...rest, ...uuid(1) })).response).toMatchObject({ device_id: "1" });
    expect(await call("Register", { ...rest, name: "none" })).toMatchObject(
      refused("INVALID_ARGUMENT", /say on which device the memory is/),
    );
    expect(await call("Register", { ...rest, name: "both", device_id: "0", ...uuid(1) })).toMatchObject(
      refused("INVALID_ARGUMENT", /give one of them/),
    );
    expect(await call("Register", { ...rest, name: "negative", device_id: "-1" })).toMatchObject(
      refused("INVALID_ARGUMENT", /device_id -1 is no device/),
    );
  });

  test("is the same region for the same again, and ALREADY_EXISTS for another", async () => {
    const clock = new FakeClock();
    const { face, call } = await start({ registry: { clock } });
    const leased = { ...face.goodRegister, lease: { seconds: 10 } };
    await call("Register", leased);
    clock.advance(5000);
    const again = await call("Register", leased);
    expect(again.response).toMatchObject({
      generation: "1",
      lease_expires_at: { seconds: String(begun + 15) },
    });
    expect(await call("Register", { ...leased, byte_size: "65" })).toMatchObject(
      refused("ALREADY_EXISTS", "shared memory region 'r' already in manager"),
    );
    expect(face.driver.opens).toBe(1);
  });

  test("takes the place of the region of the generation that is meant, of no other", async () => {
    const { face, call } = await start();
    await call("Register", face.goodRegister);
    const replacement = { ...face.goodRegister, byte_size: "128" };
    expect(await call("Register", { ...replacement, replace_generation: "7" })).toMatchObject(
      refused("FAILED_PRECONDITION", /has generation 1, not 7/),
    );
    expect((await call("Register", { ...replacement, replace_generation: "1" })).response).toMatchObject({
      byte_size: "128",
      reason: "REASON_REPLACED",
    });
    expect(await call("Register", { ...replacement, name: "new", replace_generation: "0" })).toMatchObject(
      refused("FAILED_PRECONDITION", /cannot be replaced: there is none/),
    );
  });

  test("of a dry run tells how large the allocation is and leaves nothing", async () => {
    const { face, call } = await start();
    const { response } = await call("Register", { ...face.goodRegister, dry_run: true });
    expect(response).toMatchObject({ state: "REGION_STATE_REGISTERING", allocation_byte_size: "4096" });
    expect(face.registry.statuses()).toEqual([]);
    expect(face.driver).toMatchObject({ opens: 1, closes: 1 });
  });

  test.each([
    [{ byte_size: "18446744073709551615" }, /byte_size 18446744073709551615 exceeds the 4096 bytes/],
    [{ byte_size: "0" }, /byte_size must be at least 1/],
    [{ offset: "18446744073709551615" }, /offset 18446744073709551615 and byte_size 64 together exceed/],
    [{ raw_handle: Buffer.alloc(63) }, /raw_handle must be the 64 bytes .* got 63/],
    [{ name: "" }, /the region name is empty/],
    [{ lease: { seconds: 0, nanos: 999_000_000 } }, /a lease lasts 1 to 604800 seconds, got 0.999/],
    [{ lease: { seconds: "604801" } }, /a lease lasts 1 to 604800 seconds, got 604801/],
    [{ lease: { seconds: -1 } }, /^lease must not be negative/],
    [{ lease: { seconds: 1, nanos: -1 } }, /^lease must not be negative/],
    [{ lease: { seconds: "9223372036854775807" } }, /^lease has at most 315576000000 seconds/],
    [{ lease: { seconds: 1, nanos: 1_000_000_000 } }, /^lease has at most .* 999999999 nanos/],
    [{ labels: { "a b": "x" } }, /a label's key has/],
    [{ exporter: { ...exporter, pid: 0 } }, /the exporter's pid must be from 1/],
    [{ exporter: { ...exporter, start_time: 0 } }, /start_time is missing/],
    [{ exporter: { ...exporter, boot_id: "" } }, /boot_id is missing/],
    [{ exporter: { ...exporter, pid_namespace: 0 } }, /pid_namespace is missing/],
    [{ exporter: {} }, /the exporter's pid must be from 1/],
  ])("refuses %j", async (fields, text) => {
    const { face, call } = await start();
    expect(await call("Register", { ...face.goodRegister, ...fields })).toMatchObject(
      refused("INVALID_ARGUMENT", text),
    );
    expect(face.registry.statuses()).toEqual([]);
    expect(face.driver.openMappings).toBe(0);
    expect(face.faults).toEqual([]);
  });

  test("is UNIMPLEMENTED where clients may not, and where nobody watches exporters", async () => {
    const closed = await start({ allowClientShm: false });
    expect(await closed.call("Register", closed.face.goodRegister)).toMatchObject({ code: "UNIMPLEMENTED" });
    const { face, call } = await start();
    expect(await call("Register", { ...face.goodRegister, exporter })).toMatchObject(
      refused("UNIMPLEMENTED", /cannot watch exporters/),
    );
  });

  test("tells what of its exporter is not so", async () => {
    const exporters = {
      watch: () => Promise.reject(new RegistryError("FAILED_PRECONDITION", "process 4711 is another")),
    };
    const { face, call } = await start({ registry: { exporters } });
    expect(await call("Register", { ...face.goodRegister, exporter })).toMatchObject(
      refused("FAILED_PRECONDITION", /process 4711 is another$/),
    );
  });
});

describe("Get", () => {
  test("finds a region or tells that there is none", async () => {
    const { face, call } = await start();
    expect(await call("Get", { name: "r" })).toMatchObject(
      refused("NOT_FOUND", "Unable to find cuda shared memory region: 'r'"),
    );
    expect(await call("Get")).toMatchObject(refused("INVALID_ARGUMENT", "the region name is empty"));
    await call("Register", face.goodRegister);
    expect((await call("Get", { name: "r" })).response).toMatchObject({ name: "r" });
  });

  test("waits for a region to come", async () => {
    const { face, call } = await start();
    const waiting = call("Get", { name: "r", wait: { seconds: 300 } });
    await call("Register", face.goodRegister);
    expect((await waiting).response).toMatchObject({ name: "r", state: "REGION_STATE_READY" });
  });

  test("waits no longer than it was asked to, or than its deadline", async () => {
    const clock = new FakeClock();
    const { call } = await start({ registry: { clock } });
    const inVain = refused(
      "DEADLINE_EXCEEDED",
      "shared memory region 'r' did not become ready in the time given",
    );
    const waiting = call("Get", { name: "r", wait: { nanos: 1 } });
    await expect.poll(() => clock.pending).toBe(1);
    clock.advance(1);
    expect(await waiting).toMatchObject(inVain);
    const deadline = { deadline: Date.now() + 100 };
    expect(await call("Get", { name: "r", wait: { seconds: 300 } }, {}, deadline)).toMatchObject({
      code: "DEADLINE_EXCEEDED",
    });
    await expect.poll(() => clock.pending).toBe(0);
    expect(await call("Get", { name: "r", wait: { seconds: 301 } })).toMatchObject(
      refused("INVALID_ARGUMENT", "a wait lasts 0 to 300 seconds, got 301"),
    );
    expect(await call("Get", { name: "r", wait: { nanos: -1 } })).toMatchObject(
      refused("INVALID_ARGUMENT", "wait must not be negative"),
    );
  });

  test("ends its wait when the service stops", async () => {
    const clock = new FakeClock();
    const { face, call } = await start({ registry: { clock } });
    const waiting = call("Get", { name: "r", wait: { seconds: 300 } });
    await expect.poll(() => clock.pending).toBe(1);
    face.shutdown.abort();
    expect(await waiting).toMatchObject(refused("UNAVAILABLE", "Server exiting"));
  });
});

describe("List", () => {
  const names = ["a", "b", "c", "d", "e"];

  async function startWithRegions() {
    const started = await start();
    for (const [index, name] of names.entries()) {
      const labels = { nr: String(index), ...(index % 2 === 0 && { even: "yes" }) };
      await started.call("Register", {
        ...started.face.goodRegister,
        name,
        device_id: String(index % 2),
        labels,
      });
    }
    const list = async (query: object) => {
      const { response } = await started.call("List", query);
      return response.regions.map(({ name }: { name: string }) => name);
    };
    return { ...started, list };
  }

  test("gives pages in the order of names until there are no more", async () => {
    const { call } = await startWithRegions();
    const seen: string[] = [];
    let token = "";
    for (let pages = 1; ; pages++) {
      const { response } = await call("List", { page_size: 2, page_token: token });
      expect(response.revision).toBe("5");
      seen.push(...response.regions.map(({ name }: { name: string }) => name));
      token = response.next_page_token;
      if (token === "" || pages > 5) break;
    }
    expect(seen).toEqual(names);
  });

  test("gives what matches all that is asked for", async () => {
    const { face, list } = await startWithRegions();
    expect(await list({})).toEqual(names);
    expect(await list({ device: "1" })).toEqual(["b", "d"]);
    expect(await list({ device: "GPU-00000000-0000-0000-0000-000000000000" })).toEqual(["a", "c", "e"]);
    expect(await list({ label_prefix: "even=" })).toEqual(["a", "c", "e"]);
    expect(await list({ label_prefix: "nr=3" })).toEqual(["d"]);
    expect(await list({ owner: "anonymous", device: "0", label_prefix: "nr=2" })).toEqual(["c"]);
    expect(await list({ owner: "alice" })).toEqual([]);
    using _pin = face.registry.pin("b", null, context);
    await face.registry.unregister("b", context);
    expect(await list({ state: "REGION_STATE_DRAINING" })).toEqual(["b"]);
    expect(await list({ state: "REGION_STATE_READY" })).toEqual(["a", "c", "d", "e"]);
    expect(await list({ state: "REGION_STATE_ORPHANED" })).toEqual([]);
  });

  test.each([
    [{ state: 6 }, "state 6 is none; there are registering, ready, orphaned, draining, close_failed"],
    [{ state: -1 }, /^state -1 is none/],
    [{ page_size: 1001 }, "page_size must be from 1 to 1000, got 1001"],
    [{ page_token: "?" }, /^page_token is none of this service's/],
  ])("refuses %j", async (query, text) => {
    const { call } = await start();
    expect(await call("List", query)).toMatchObject(refused("INVALID_ARGUMENT", text));
  });
});

describe("Renew", () => {
  test("starts a lease anew, with another length if one is given", async () => {
    const clock = new FakeClock();
    const { face, call } = await start({ registry: { clock } });
    await call("Register", { ...face.goodRegister, lease: { seconds: 10 } });
    clock.advance(9000);
    expect((await call("Renew", { name: "r" })).response.lease_expires_at.seconds).toBe(String(begun + 19));
    clock.advance(9000);
    const { response } = await call("Renew", { name: "r", lease: { seconds: 20 }, generation: "1" });
    expect(response).toMatchObject({ lease: { seconds: "20" } });
    clock.advance(20_000);
    await expect.poll(() => face.registry.statuses()).toEqual([]);
  });

  test("is refused where there is nothing to renew", async () => {
    const { face, call } = await start();
    expect(await call("Renew", { name: "r" })).toMatchObject({ code: "NOT_FOUND" });
    await call("Register", face.goodRegister);
    expect(await call("Renew", { name: "r" })).toMatchObject(refused("FAILED_PRECONDITION", /has no lease/));
    expect(await call("Renew", { name: "r", lease: { seconds: 5 }, generation: "0" })).toMatchObject(
      refused("FAILED_PRECONDITION", /has generation 1, not 0/),
    );
    expect(await call("Renew", { name: "r", lease: {} })).toMatchObject(
      refused("INVALID_ARGUMENT", "a lease lasts 1 to 604800 seconds, got 0"),
    );
  });
});

describe("Unregister", () => {
  async function startPinned(options: Parameters<typeof start>[0] = {}) {
    const started = await start(options);
    await started.call("Register", started.face.goodRegister);
    return { ...started, pin: started.face.registry.pin("r", null, context) };
  }

  test("tells that the mapping is closed", async () => {
    const { face, call } = await start();
    expect(await call("Unregister", { name: "r" })).toMatchObject({ code: "NOT_FOUND" });
    expect(await call("Unregister")).toMatchObject({ code: "INVALID_ARGUMENT" });
    await call("Register", face.goodRegister);
    expect(await call("Unregister", { name: "r", generation: "2" })).toMatchObject({
      code: "FAILED_PRECONDITION",
    });
    expect((await call("Unregister", { name: "r" })).response).toEqual({ closed: true, pins: "0" });
    expect(face.driver.openMappings).toBe(0);
  });

  test("tells who still uses it, and lets nobody else begin to", async () => {
    const { face, call, pin } = await startPinned();
    expect((await call("Unregister", { name: "r" })).response).toEqual({ closed: false, pins: "1" });
    expect(() => face.registry.pin("r", null, context)).toThrow("is being unregistered");
    pin.release();
    await expect.poll(() => face.driver.openMappings).toBe(0);
  });

  test("waits until the last has let go", async () => {
    const { face, call, pin } = await startPinned();
    const waiting = call("Unregister", { name: "r", wait: { seconds: 300 } });
    await expect.poll(() => face.registry.status("r").state).toBe("draining");
    pin.release();
    expect((await waiting).response).toEqual({ closed: true, pins: "0" });
  });

  test("waits no longer than it was asked to, and takes it by force if that is asked for", async () => {
    const clock = new FakeClock();
    const { face, call, pin } = await startPinned({ registry: { clock } });
    const waiting = call("Unregister", { name: "r", wait: { seconds: 5 } });
    await expect.poll(() => clock.pending).toBe(1);
    clock.advance(5000);
    expect(await waiting).toMatchObject(refused("DEADLINE_EXCEEDED", /still used by 1/));
    expect((await call("Unregister", { name: "r", force: true })).response).toEqual({
      closed: true,
      pins: "0",
    });
    await expect(pin.read(0n, new Uint8Array(1))).rejects.toThrow("was unregistered by force");
    expect(face.driver.openMappings).toBe(0);
  });
});

test("GetServer tells which run of which service this is", async () => {
  const { face, call } = await start();
  await call("Register", face.goodRegister);
  expect((await call("GetServer")).response).toEqual({
    name: "cudashm",
    version: "1.2.3",
    instance_id: "test",
    epoch: "1",
    revision: "1",
    access: "shared",
    unregister_all: "all",
    adoption: { pending: "0", adopted: "0", refused: [] },
  });
});

test("ListDevices tells what of each is mapped here, and what is free where that is known", async () => {
  const { face, call } = await start();
  Object.assign(face.driver, { freeBytes: async (ordinal: number) => (ordinal === 0 ? 2n ** 63n : null) });
  await call("Register", face.goodRegister);
  await call("Register", { ...face.goodRegister, name: "same allocation" });
  const device = (ordinal: number, rest: object) => ({
    ordinal: String(ordinal),
    uuid: `GPU-00000000-0000-0000-0000-00000000000${ordinal}`,
    pci_bus_id: `0000:0${ordinal}:00.0`,
    name: `Fake GPU ${ordinal}`,
    total_bytes: String(2 ** 33),
    ...rest,
  });
  expect((await call("ListDevices")).response.devices).toEqual([
    device(0, {
      free_bytes: String(2n ** 63n),
      _free_bytes: "free_bytes",
      mapped_bytes: "4096",
      regions: "2",
    }),
    device(1, { mapped_bytes: "0", regions: "0" }),
  ]);
  face.driver.devicesError = new RegistryError("UNAVAILABLE", "there is no usable driver");
  expect(await call("ListDevices")).toMatchObject({ code: "UNAVAILABLE" });
});

test("a driver that never answers keeps no caller when the service stops", async () => {
  const { face, call } = await start();
  const asked = createDeferred();
  Object.assign(face.driver, {
    devices: () => {
      asked.resolve();
      return new Promise<never>(() => {});
    },
  });
  const waiting = call("ListDevices");
  await asked.promise;
  face.shutdown.abort();
  expect(await waiting).toMatchObject(refused("UNAVAILABLE", "Server exiting"));
});

test("what both services register is one set of regions", async () => {
  const { face, call, address } = await start();
  const triton = createCaller(address);
  await triton("CudaSharedMemoryRegister", face.goodRegister);
  expect((await call("Get", { name: "r" })).response).toMatchObject({ name: "r", protocol: "grpc" });
  await call("Unregister", { name: "r" });
  expect((await triton("CudaSharedMemoryStatus")).response).toEqual({ regions: {} });
});
