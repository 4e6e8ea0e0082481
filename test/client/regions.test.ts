import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { ExporterProcess } from "../../src/cli/exporter-process.js";
import type { ServiceProcess } from "../../src/cli/service-process.js";
import { type CudaSharedMemoryClient, createCudaSharedMemoryClient } from "../../src/client/index.js";
import { startExporter, startService, testDriver } from "../helpers/cudashm.js";

let service: ServiceProcess;
let client: CudaSharedMemoryClient;
let named: ExporterProcess;
beforeAll(async () => {
  named = await startExporter(["--fill=named"]);
  service = await startService(["--allow-contents"]);
  client = createCudaSharedMemoryClient({ baseUrl: service.httpUrl });
});
afterEach(() => client.unregisterAll());
afterAll(async () => {
  expect(await named.end()).toBe(0);
  expect(await service.stop()).toEqual({ code: 0, signal: null });
});

const b64Of = (exporter: ExporterProcess) => exporter.body.raw_handle.b64;

test("registers, shows and unregisters a region, its handle given as bytes or as base64", async () => {
  await using exporter = await startExporter();
  const bytes = Uint8Array.from(Buffer.from(b64Of(exporter), "base64"));
  await client.register("bytes", { rawHandle: bytes, deviceId: 0, byteSize: 4096 });
  await client.register("base64", { rawHandle: b64Of(exporter), deviceId: 0n, byteSize: 64n });
  const asBase64 = { name: "base64", deviceId: 0, byteSize: 64n };
  const asBytes = { name: "bytes", deviceId: 0, byteSize: 4096n };
  expect(await client.statuses()).toEqual([asBase64, asBytes]);
  expect(await client.status("bytes")).toEqual(asBytes);
  await client.unregister("bytes");
  expect(await client.statuses()).toEqual([asBase64]);
  await client.unregisterAll();
  expect(await client.statuses()).toEqual([]);
});

test("a region that nobody registered is NOT_FOUND, and unregistering it does nothing", async () => {
  await client.unregister("nobody");
  await expect(client.status("nobody")).rejects.toMatchObject({
    name: "CudaSharedMemoryError",
    code: "NOT_FOUND",
    httpStatus: 404,
    message: "Unable to find cuda shared memory region: 'nobody'",
  });
});

test("contents go both ways between the client and the exporter, to the byte", async () => {
  await using exporter = await startExporter(["--bytes=5000", "--fill=exporter "]);
  await client.register("seen", { rawHandle: b64Of(exporter), deviceId: 0, byteSize: 5000 });
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  expect(await client.readContents("seen")).toHaveLength(5000);
  expect(text(await client.readContents("seen", { offset: 2, byteSize: 10n }))).toBe("porter exp");
  expect(text(await client.readContents("seen", { offset: 4995n }))).toBe("expor");
  await client.writeContents("seen", new TextEncoder().encode("client"), { offset: 4994n });
  expect(String(await exporter.read(4992, 8))).toMatch(/^..client$/);
  await client.writeContents("seen", new Uint8Array(new SharedArrayBuffer(2)));
  expect(await exporter.read(0, 4)).toEqual(Buffer.from("\0\0po"));
  await expect(client.readContents("seen", { offset: 4990, byteSize: 11 })).rejects.toMatchObject({
    code: "OUT_OF_RANGE",
    httpStatus: 400,
  });
});

test.each([
  "my region",
  "a/b",
  "a/../b",
  "...",
  "100%",
  "%2e%2e",
  "a%2541",
  "a?b#c",
  "a;b=c&d+e",
  "\\",
  "入力テンソル",
  "caf\u00e9",
  "cafe\u0301",
  "\u{1f600}",
  "__proto__",
  "toString",
  "InceptionV3/Predictions/Softmax",
  "x".repeat(1024),
])("the name %j reaches the service unchanged in every call", async (name) => {
  await client.register("other", { rawHandle: b64Of(named), deviceId: 0, byteSize: 1 });
  await client.register(name, { rawHandle: b64Of(named), deviceId: 0, byteSize: 5 });
  expect(await client.status(name)).toEqual({ name, deviceId: 0, byteSize: 5n });
  expect((await client.statuses()).map((region) => region.name)).toContain(name);
  expect(new TextDecoder().decode(await client.readContents(name))).toBe("named");
  await client.unregister(name);
  expect((await client.statuses()).map((region) => region.name)).toEqual(["other"]);
});

test("says whether the service lives and is ready, and what it is", async () => {
  expect(await client.isLive()).toBe(true);
  expect(await client.isReady()).toBe(true);
  const metadata = await client.metadata();
  expect(metadata.name).toBe("cudashm");
  expect(metadata.version).toMatch(/^\d+\.\d+\.\d+$/);
  expect(metadata.extensions).toContain("cuda_shared_memory");
  expect(metadata.cudaDriver).toMatch(new RegExp(`^${testDriver}`));
});

test("lists a hundred regions exactly", async () => {
  await using exporter = await startExporter(["--bytes=100"]);
  const names = Array.from({ length: 100 }, (_, i) => `region ${String(i).padStart(2, "0")}`);
  for (const [i, name] of names.entries()) {
    await client.register(name, { rawHandle: b64Of(exporter), deviceId: 0, byteSize: i + 1 });
  }
  expect(await client.statuses()).toEqual(
    names.map((name, i) => ({ name, deviceId: 0, byteSize: BigInt(i + 1) })),
  );
});

test("works below a path of a base URL, with headers and a fetch of the caller's", async () => {
  const seen: [string, string | null, string | null][] = [];
  const throughProxy = createCudaSharedMemoryClient({
    baseUrl: "https://proxy.example/gpu/0/",
    headers: { authorization: "Bearer of-the-test" },
    fetch: (input, init) => {
      const headers = new Headers(init?.headers);
      seen.push([String(input), headers.get("authorization"), headers.get("content-type")]);
      const path = String(input).replace("https://proxy.example/gpu/0", "");
      return fetch(service.httpUrl + path, init);
    },
  });
  await using exporter = await startExporter();
  await throughProxy.register("a b", { rawHandle: b64Of(exporter), deviceId: 0, byteSize: 7 });
  expect(await throughProxy.statuses()).toEqual([{ name: "a b", deviceId: 0, byteSize: 7n }]);
  const cuda = "https://proxy.example/gpu/0/v2/cudasharedmemory";
  expect(seen).toEqual([
    [`${cuda}/region/a%20b/register`, "Bearer of-the-test", "application/json"],
    [`${cuda}/status`, "Bearer of-the-test", null],
  ]);
});
