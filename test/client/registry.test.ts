import { getEventListeners } from "node:events";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { ExporterProcess } from "../../src/cli/exporter-process.js";
import type { ServiceProcess } from "../../src/cli/service-process.js";
import {
  type CudaSharedMemoryClient,
  CudaSharedMemoryError,
  createCudaSharedMemoryClient,
  type FullRegistration,
  type Region,
} from "../../src/client/index.js";
import { readExporter } from "../../src/native/exporter-identity.js";
import { crc32c } from "../helpers/crc32c.js";
import { startExporter, startService, testDriver } from "../helpers/cudashm.js";
import { createDeferred } from "../helpers/deferred.js";

let service: ServiceProcess;
let exporter: ExporterProcess;
let client: CudaSharedMemoryClient;
let memory: FullRegistration;
beforeAll(async () => {
  service = await startService(["--allow-contents"]);
  exporter = await startExporter(["--bytes=5000", "--fill=abcdefghij"]);
  client = createCudaSharedMemoryClient({ baseUrl: service.httpUrl });
  memory = { rawHandle: exporter.body.raw_handle.b64, deviceId: 0, byteSize: 5000 };
});
afterEach(() => client.unregisterAll());
afterAll(async () => {
  expect(await exporter.end()).toBe(0);
  expect(await service.stop()).toEqual({ code: 0, signal: null });
});

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const seen: T[] = [];
  for await (const item of items) seen.push(item);
  return seen;
}

describe("a region in full", () => {
  test("has what it was registered with, and what the service knows of it", async () => {
    const began = Date.now();
    const [device] = await client.devices();
    const region = await client.registerRegion("full", {
      rawHandle: Uint8Array.from(Buffer.from(exporter.body.raw_handle.b64, "base64")),
      deviceUuid: device?.uuid,
      byteSize: 4000n,
      offset: 1000,
      leaseMs: 60_500,
      exporter: await readExporter(exporter.pid),
      labels: { model: "r\u00e9sum\u00e9", "a/b": "", ["__proto__"]: "1e3" },
    });
    expect(region).toEqual({
      name: "full",
      kind: "cuda",
      state: "ready",
      reason: "requested",
      deviceId: 0,
      deviceUuid: device?.uuid,
      byteSize: 4000n,
      offset: 1000n,
      allocationByteSize: expect.any(BigInt),
      owner: "anonymous",
      session: null,
      protocol: "http",
      registeredAt: expect.any(Date),
      lastUsedAt: null,
      leaseMs: 60_500,
      leaseExpiresAt: expect.any(Date),
      pins: 0,
      generation: expect.any(BigInt),
      fingerprint: expect.stringMatching(/./),
      labels: Object.fromEntries([
        ["model", "r\u00e9sum\u00e9"],
        ["a/b", ""],
        ["__proto__", "1e3"],
      ]),
      exporter: await readExporter(exporter.pid),
      isVerified: true,
    } satisfies Record<keyof Region, unknown>);
    expect(region.allocationByteSize).toBeGreaterThanOrEqual(5000n);
    expect(region.registeredAt.getTime()).toBeGreaterThanOrEqual(began);
    expect(region.leaseExpiresAt?.getTime()).toBeGreaterThanOrEqual(began + 60_500);
    expect(await client.region("full")).toEqual(region);
    // Its window of the allocation is what is read.
    expect(String(Buffer.from(await client.readContents("full", { byteSize: 4 })))).toBe("abcd");
    const { lastUsedAt } = await client.region("full");
    expect(lastUsedAt?.getTime()).toBeGreaterThanOrEqual(began);
  });

  test("has null for what there is none of, and no lease to renew", async () => {
    const region = await client.registerRegion("plain", memory);
    expect(region).toMatchObject({ exporter: null, leaseMs: null, leaseExpiresAt: null, labels: {} });
    await expect(client.renew("plain")).rejects.toMatchObject({ code: "FAILED_PRECONDITION" });
    expect(await client.renew("plain", { leaseMs: 1500 })).toMatchObject({ leaseMs: 1500 });
  });

  test("may be registered again as it is, and by Triton's call it is another's name", async () => {
    const first = await client.registerRegion("again", memory);
    expect((await client.registerRegion("again", memory)).generation).toBe(first.generation);
    await expect(client.registerRegion("again", { ...memory, byteSize: 1 })).rejects.toMatchObject({
      code: "ALREADY_EXISTS",
      message: "shared memory region 'again' already in manager",
    });
    await expect(client.register("again", { ...memory, deviceId: 0 })).rejects.toMatchObject({
      code: "ALREADY_EXISTS",
    });
    expect(await client.status("again")).toEqual({ name: "again", deviceId: 0, byteSize: 5000n });
  });

  test("takes the place of the one with the given generation and of no other", async () => {
    const old = await client.registerRegion("replaced", memory);
    const next = { ...memory, byteSize: 1, replaceGeneration: old.generation };
    await expect(
      client.registerRegion("replaced", { ...next, replaceGeneration: old.generation + 1n }),
    ).rejects.toMatchObject({ code: "FAILED_PRECONDITION" });
    const replacement = await client.registerRegion("replaced", next);
    expect(replacement).toMatchObject({ byteSize: 1n, reason: "replaced" });
    expect(replacement.generation).toBeGreaterThan(old.generation);
  });

  test("of a dry run is none, and tells the size of the allocation", async () => {
    const dry = await client.registerRegion("dry", { ...memory, byteSize: 1, dryRun: true });
    expect(dry.state).toBe("registering");
    expect(dry.allocationByteSize).toBeGreaterThanOrEqual(5000n);
    expect(await client.statuses()).toEqual([]);
    await expect(client.region("dry")).rejects.toMatchObject({ code: "NOT_FOUND", httpStatus: 404 });
  });

  test("becomes an orphan when its exporter ends", async () => {
    await using mortal = await startExporter();
    const handle = { rawHandle: mortal.body.raw_handle.b64, deviceId: 0, byteSize: 1 };
    await client.registerRegion("orphan", { ...handle, exporter: await readExporter(mortal.pid) });
    const events = client.events({ region: "orphan" });
    await events.next();
    expect(await mortal.end()).toBe(0);
    expect((await events.next()).value).toMatchObject({ kind: "orphaned", reason: "exporter_exited" });
    await events.return(undefined as never);
    expect(await client.region("orphan")).toMatchObject({ state: "orphaned", reason: "exporter_exited" });
  });

  test("whose exporter is not as claimed is refused in the service's words", async () => {
    const real = await readExporter(exporter.pid);
    const claimed = { ...memory, exporter: { ...real, startTime: real.startTime + 1n } };
    await expect(client.registerRegion("claimed", claimed)).rejects.toMatchObject({
      code: "FAILED_PRECONDITION",
      httpStatus: 400,
    });
  });
});

describe("lists", () => {
  const names = Array.from({ length: 7 }, (_, index) => `n${index}`);
  const register = async () => {
    for (const [index, name] of names.entries()) {
      await client.registerRegion(name, { ...memory, labels: { parity: index % 2 === 0 ? "even" : "odd" } });
    }
  };

  test.each([1, 2, 3, 7, 1000, undefined])("pages of %j come to all regions, in order", async (pageSize) => {
    await register();
    const seen = await all(client.regions({ pageSize }));
    expect(seen.map(({ name }) => name)).toEqual(names);
  });

  test("a page says where the next begins, and null at the end", async () => {
    await register();
    const first = await client.regionPage({ pageSize: 4 });
    expect(first.regions.map(({ name }) => name)).toEqual(names.slice(0, 4));
    const { revision } = await client.server();
    expect(first.revision).toBe(revision);
    const second = await client.regionPage({ pageSize: 4, pageToken: first.nextPageToken ?? "" });
    expect(second).toMatchObject({ nextPageToken: null, revision });
    expect(second.regions.map(({ name }) => name)).toEqual(names.slice(4));
  });

  test("filters leave only what matches them all", async () => {
    await register();
    const [device] = await client.devices();
    const namesOf = async (filter: Parameters<typeof client.regions>[0]) =>
      (await all(client.regions(filter))).map(({ name }) => name);
    const odd = ["n1", "n3", "n5"];
    expect(await namesOf({ labelPrefix: "parity=o" })).toEqual(odd);
    expect(await namesOf({ labelPrefix: "parity=o", device: 0, state: "ready", owner: "anonymous" })).toEqual(
      odd,
    );
    expect(await namesOf({ labelPrefix: "parity=o", device: device?.uuid, pageSize: 1 })).toEqual(odd);
    expect(await namesOf({ labelPrefix: "parity=&" })).toEqual([]);
    expect(await namesOf({ owner: "nobody" })).toEqual([]);
    expect(await namesOf({ device: 15 })).toEqual([]);
    expect(await namesOf({ state: "orphaned" })).toEqual([]);
  });

  test("what cannot be listed is refused by the first step of the loop", async () => {
    await expect(all(client.regions({ pageSize: 0 }))).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
    await expect(all(client.regions({ pageSize: 0.5 }))).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      httpStatus: null,
    });
    await expect(client.regionPage({ pageToken: "none of ours" })).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      httpStatus: 400,
    });
    await expect(client.regionPage({ owner: "a\ud800" })).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      message: "owner has an unpaired surrogate",
    });
  });
});

test("says which run of which service answers, and who may do what", async () => {
  const state = await client.server();
  expect(state).toEqual({
    name: "cudashm",
    version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    instanceId: expect.stringMatching(/./),
    epoch: 1n,
    revision: expect.any(BigInt),
    access: "shared",
    unregisterAll: "all",
    adoption: { pending: 0, adopted: 0, refused: [] },
  });
  expect(await client.metadata()).toMatchObject({ instanceId: state.instanceId, epoch: 1n });
});

test("tells the devices, and what is mapped on them", async () => {
  await client.registerRegion("a", memory);
  const { allocationByteSize } = await client.registerRegion("b", { ...memory, byteSize: 1 });
  const [device] = await client.devices();
  expect(device).toMatchObject({
    ordinal: 0,
    uuid: expect.stringMatching(/^GPU-/),
    pciBusId: expect.any(String),
    name: expect.stringMatching(/./),
    totalBytes: expect.any(BigInt),
    mappedBytes: allocationByteSize,
    regions: 2,
  });
});

describe("unregistering", () => {
  test("says that the memory is closed, and is NOT_FOUND after", async () => {
    const { generation } = await client.registerRegion("r", memory);
    await expect(client.unregisterRegion("r", { generation: generation + 1n })).rejects.toMatchObject({
      code: "FAILED_PRECONDITION",
    });
    expect(await client.unregisterRegion("r", { waitMs: 5000, generation })).toEqual({
      closed: true,
      pins: 0,
    });
    await expect(client.unregisterRegion("r")).rejects.toMatchObject({ code: "NOT_FOUND" });
  });

  test("by force takes a region that nobody uses, too", async () => {
    await client.registerRegion("r", memory);
    expect(await client.unregisterRegion("r", { waitMs: 0, force: true })).toEqual({ closed: true, pins: 0 });
  });

  test("a region in use waits, takes no new users, and goes by force", async () => {
    await using large = await startExporter([`--bytes=${64 * 1024 * 1024}`]);
    await client.registerRegion("r", {
      ...memory,
      rawHandle: large.body.raw_handle.b64,
      byteSize: 64 * 1024 * 1024,
    });
    // More than sockets hold, so it is in use for as long as nobody reads it.
    const unread = await fetch(`${service.httpUrl}/v1/regions/r/contents`);
    await expect(client.unregisterRegion("r", { waitMs: 1 })).rejects.toMatchObject({
      code: "DEADLINE_EXCEEDED",
    });
    expect(await client.unregisterRegion("r")).toEqual({ closed: false, pins: 1 });
    expect(await client.region("r")).toMatchObject({ state: "draining", pins: 1 });
    await expect(client.checksum("r")).rejects.toMatchObject({ code: "FAILED_PRECONDITION" });
    expect(await client.unregisterRegion("r", { force: true })).toEqual({ closed: true, pins: 0 });
    await expect(unread.arrayBuffer()).rejects.toThrow();
  });

  test.each([-1, 300_001])("a wait of %d ms is the service's to refuse", async (waitMs) => {
    await client.registerRegion("r", memory);
    await expect(client.unregisterRegion("r", { waitMs })).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
    });
    expect(await client.region("r")).toMatchObject({ state: "ready" });
  });
});

describe("waiting for a region", () => {
  test("ends as soon as it is there", async () => {
    const waiting = client.waitFor("later", { waitMs: 60_000 });
    const region = await client.registerRegion("later", memory);
    expect(await waiting).toEqual(region);
  });

  test("is DEADLINE_EXCEEDED after its time, and CANCELLED by its signal", async () => {
    await expect(client.waitFor("never", { waitMs: 1 })).rejects.toMatchObject({
      code: "DEADLINE_EXCEEDED",
      httpStatus: 504,
    });
    const abort = new AbortController();
    const waiting = client.waitFor("never", { waitMs: 60_000, signal: abort.signal });
    abort.abort();
    await expect(waiting).rejects.toMatchObject({ code: "CANCELLED", httpStatus: null });
  });
});

test("keepAlive renews a lease of a second for longer than that, and ends with the region", async () => {
  const renewals = createDeferred();
  let asked = 0;
  const counted = createCudaSharedMemoryClient({
    baseUrl: service.httpUrl,
    fetch: async (...request) => {
      const answer = await fetch(...request);
      if (String(request[0]).endsWith("/renew") && ++asked === 5) renewals.resolve();
      return answer;
    },
  });
  const { leaseExpiresAt } = await client.registerRegion("kept", { ...memory, leaseMs: 1000 });
  const abort = new AbortController();
  const kept = counted.keepAlive("kept", { signal: abort.signal });
  await renewals.promise;
  expect(Date.now()).toBeGreaterThan(leaseExpiresAt?.getTime() ?? Number.NaN);
  expect(await client.region("kept")).toMatchObject({ state: "ready", leaseMs: 1000 });
  const gone = expect(kept).rejects.toMatchObject({ code: "NOT_FOUND" });
  await client.unregister("kept");
  await gone;
  expect(getEventListeners(abort.signal, "abort")).toEqual([]);
});

test("keepAlive ends with its signal, and with the client's", async () => {
  await client.registerRegion("kept", { ...memory, leaseMs: 60_000 });
  const aborts = [new AbortController(), new AbortController()] as const;
  for (const abort of aborts) {
    const own = createCudaSharedMemoryClient({ baseUrl: service.httpUrl, signal: aborts[1].signal });
    const kept = own.keepAlive("kept", { signal: aborts[0].signal });
    abort.abort();
    await kept;
  }
});

test("a checksum is that of the bytes in the window", async () => {
  await client.registerRegion("summed", memory);
  const bytes = await client.readContents("summed");
  expect(await client.checksum("summed")).toEqual({ crc32c: crc32c(bytes), byteSize: 5000n });
  expect(await client.checksum("summed", { offset: 10n, byteSize: 9 })).toEqual({
    crc32c: crc32c(bytes.subarray(10, 19)),
    byteSize: 9n,
  });
  await expect(client.checksum("summed", { offset: 5001 })).rejects.toMatchObject({ code: "OUT_OF_RANGE" });
});

describe("names that no URL carries are refused before anything is sent", () => {
  const sent = () => expect.unreachable("a request was sent");
  const offline = createCudaSharedMemoryClient({ baseUrl: "http://localhost", fetch: sent });

  test.each(["", ".", "..", "a\ud800"])("%j", async (name) => {
    const refusal = { code: "INVALID_ARGUMENT", httpStatus: null };
    const { signal } = new AbortController();
    await expect(offline.region(name)).rejects.toMatchObject(refusal);
    await expect(offline.waitFor(name, { waitMs: 1 })).rejects.toMatchObject(refusal);
    await expect(offline.renew(name)).rejects.toMatchObject(refusal);
    await expect(offline.keepAlive(name, { signal })).rejects.toMatchObject(refusal);
    await expect(offline.unregisterRegion(name)).rejects.toMatchObject(refusal);
    await expect(offline.checksum(name)).rejects.toMatchObject(refusal);
    await expect(offline.registerRegion(name, memory)).rejects.toMatchObject({
      ...refusal,
      message: expect.stringMatching(/^failed to register shared memory region '/),
    });
  });

  test.each([0.5, Number.NaN, Number.POSITIVE_INFINITY])("nor are times of %d ms", async (ms) => {
    const refusal = { code: "INVALID_ARGUMENT", httpStatus: null };
    await expect(offline.registerRegion("r", { ...memory, leaseMs: ms })).rejects.toMatchObject(refusal);
    await expect(offline.renew("r", { leaseMs: ms })).rejects.toMatchObject(refusal);
    await expect(offline.waitFor("r", { waitMs: ms })).rejects.toMatchObject(refusal);
  });
});

test.each(["a/b", "100%", "a?b#c&d=e+f", "\u5165\u529b", "__proto__", "x".repeat(1024)])(
  "the name %j reaches the service unchanged in every call",
  async (name) => {
    expect(await client.registerRegion(name, { ...memory, leaseMs: 60_000 })).toMatchObject({ name });
    const events = client.events({ fromRevision: 1, region: name });
    await events.next();
    expect((await events.next()).value).toMatchObject({ type: "change", region: { name } });
    await events.return(undefined as never);
    expect(await client.region(name)).toMatchObject({ name });
    expect(await client.waitFor(name, { waitMs: 0 })).toMatchObject({ name });
    expect(await client.renew(name)).toMatchObject({ name });
    expect(await client.checksum(name)).toMatchObject({ byteSize: 5000n });
    expect(await client.unregisterRegion(name)).toMatchObject({ closed: true });
  },
);

test.skipIf(testDriver !== "emulated")("sizes above 2^53 are exact", async () => {
  await expect(client.registerRegion("r", { ...memory, byteSize: 2n ** 53n + 1n })).rejects.toThrow(
    "9007199254740993",
  );
  await expect(client.registerRegion("r", { ...memory, offset: 2n ** 64n - 1n })).rejects.toThrow(
    "18446744073709551615",
  );
});

test("a client whose signal is aborted refuses every call", async () => {
  const off = createCudaSharedMemoryClient({ baseUrl: service.httpUrl, signal: AbortSignal.abort() });
  const cancelled = { code: "CANCELLED" };
  await expect(off.server()).rejects.toMatchObject(cancelled);
  await expect(off.devices()).rejects.toMatchObject(cancelled);
  await expect(off.registerRegion("r", memory)).rejects.toMatchObject(cancelled);
  await expect(all(off.regions())).rejects.toBeInstanceOf(CudaSharedMemoryError);
  await expect(off.events().next()).rejects.toMatchObject(cancelled);
});
