import { afterAll, beforeAll, expect, test } from "vitest";
import type { ServiceProcess } from "../../src/cli/service-process.js";
import { createCudaDriver } from "../../src/native/driver-selection.js";
import { startExporter, startService, testDriver } from "../helpers/cudashm.js";
import { region, request } from "../helpers/http.js";
import { inferenceClient } from "../helpers/inference-client.js";

let service: ServiceProcess;
beforeAll(async () => {
  service = await startService(["--allow-contents"]);
});
afterAll(async () => {
  expect(await service.stop()).toEqual({ code: 0, signal: null });
});

const post = (path: string, body?: string) => request("POST", service.httpUrl + path, body);
const get = (path: string) => request("GET", service.httpUrl + path);
const status = async () => JSON.parse((await get("/v2/cudasharedmemory/status")).text) as object[];
const ok = { status: 200, text: "" };

function contentsUrl(name: string, offset: number, byteSize: number): string {
  return `${service.httpUrl}/v1/regions/${name}/contents?offset=${offset}&byte_size=${byteSize}`;
}

async function contents(name: string, offset: number, byteSize: number): Promise<string> {
  const response = await fetch(contentsUrl(name, offset, byteSize));
  expect(response.status).toBe(200);
  return Buffer.from(await response.arrayBuffer()).toString("latin1");
}

test("allocate, register with the printed line as it is, status, unregister", async () => {
  await using exporter = await startExporter();
  expect(exporter.bodyLine).toMatch(
    /^\{"raw_handle":\{"b64":"[A-Za-z0-9+/]{86}=="\},"device_id":0,"byte_size":4096\}$/,
  );
  expect(await post(region("thread", "register"), exporter.bodyLine)).toEqual(ok);
  const listed = { status: 200, text: '[{"name":"thread","device_id":0,"byte_size":4096}]' };
  expect(await get("/v2/cudasharedmemory/status")).toEqual(listed);
  expect(await get(region("thread", "status"))).toEqual(listed);
  expect(await post(region("thread", "unregister"))).toEqual(ok);
  expect(await get("/v2/cudasharedmemory/status")).toEqual({ status: 200, text: "[]" });
  expect(await exporter.end()).toBe(0);
});

test("the service sees what the exporter wrote before and after, to the last byte", async () => {
  await using exporter = await startExporter(["--bytes=10000", "--fill=exporter "]);
  expect(await post(region("seen", "register"), exporter.bodyLine)).toEqual(ok);
  expect(await contents("seen", 0, 10_000)).toBe("exporter ".repeat(1112).slice(0, 10_000));
  await exporter.write(9_990, Buffer.from("0123456789"));
  expect(await contents("seen", 9_985, 15)).toBe(`${"exporter ".repeat(1112).slice(9_985, 9_990)}0123456789`);
  await post(region("seen", "unregister"));
});

test("the exporter sees what is written through the service", async () => {
  await using exporter = await startExporter(["--bytes=8192", "--fill=0"]);
  expect(await post(region("written", "register"), exporter.bodyLine)).toEqual(ok);
  const bytes = Buffer.from("from the service");
  const answer = await request("PUT", contentsUrl("written", 4000, bytes.length), bytes);
  expect(answer.status).toBe(200);
  expect(await exporter.read(3998, 20)).toEqual(Buffer.from(`\0\0${bytes}\0\0`));
  await post(region("written", "unregister"));
});

test("two exporters are two memories", async () => {
  await using first = await startExporter(["--fill=1"]);
  await using second = await startExporter(["--fill=2"]);
  await post(region("one", "register"), first.bodyLine);
  await post(region("two", "register"), second.bodyLine);
  expect(await contents("one", 0, 4096)).toBe("\x01".repeat(4096));
  expect(await contents("two", 0, 4096)).toBe("\x02".repeat(4096));
  await post("/v2/cudasharedmemory/unregister");
  expect(await status()).toEqual([]);
});

test("a region registered over gRPC is the same region over HTTP", async () => {
  using client = inferenceClient(service.grpcAddress);
  await using exporter = await startExporter(["--fill=grpc"]);
  const handle = Buffer.from(exporter.body.raw_handle.b64, "base64");
  const register = { name: "a/b c", raw_handle: handle, device_id: 0, byte_size: 64 };
  await client.call("CudaSharedMemoryRegister", register);
  expect(await get(region("a/b c", "status"))).toEqual({
    status: 200,
    text: '[{"name":"a/b c","device_id":0,"byte_size":64}]',
  });
  expect(await contents("a%2Fb%20c", 0, 64)).toBe("grpc".repeat(16));
  await expect(client.call("CudaSharedMemoryRegister", register)).rejects.toMatchObject({ code: 6 });
  expect(await client.call("CudaSharedMemoryStatus", { name: "" })).toEqual({
    regions: { "a/b c": { name: "a/b c", device_id: "0", byte_size: "64" } },
  });
  await client.call("CudaSharedMemoryUnregister", { name: "a/b c" });
  expect(await status()).toEqual([]);
});

test("one handle under two names: the second stays readable when the first is unregistered", async () => {
  await using exporter = await startExporter(["--fill=two names"]);
  await post(region("first", "register"), exporter.bodyLine);
  expect(await post(region("second", "register"), exporter.bodyLine)).toEqual(ok);
  await post(region("first", "unregister"));
  expect(await contents("second", 0, 9)).toBe("two names");
  await post(region("second", "unregister"));
  expect(await status()).toEqual([]);
});

test("a region may be as large as its allocation and not a byte larger", async () => {
  await using exporter = await startExporter(["--bytes=5000"]);
  const sized = (byteSize: number) =>
    exporter.bodyLine.replace('"byte_size":5000', `"byte_size":${byteSize}`);
  const refused = await post(region("sized", "register"), sized(5001));
  expect(refused.status).toBe(400);
  expect(refused.text).toContain("failed to register shared memory region 'sized': invalid args");
  expect(await status()).toEqual([]);
  expect(await post(region("sized", "register"), sized(5000))).toEqual(ok);
  await post(region("sized", "unregister"));
});

test("memory of a killed exporter stays readable until it is unregistered, and cannot be opened anew", async () => {
  const exporter = await startExporter(["--fill=survives "]);
  await post(region("orphan", "register"), exporter.bodyLine);
  await exporter.process.kill("SIGKILL");
  expect(await contents("orphan", 0, 18)).toBe("survives survives ");
  await post(region("orphan", "unregister"));
  const refused = await post(region("orphan", "register"), exporter.bodyLine);
  expect(refused.status).toBe(400);
  expect(refused.text).toMatch(/CUDA_ERROR_\w+ \(\d+\)/);
  expect(refused.text).not.toContain(exporter.body.raw_handle.b64);
});

test("memory that is freed and allocated again has a new handle, and the old mapping keeps the old bytes", async () => {
  const driver = createCudaDriver({ preference: testDriver, contextLingerMs: 0 });
  const allocate = async (text: string) => {
    const allocation = await driver.allocate(0, 4096n);
    await allocation.write(0n, Buffer.from(text));
    const b64 = Buffer.from((await allocation.exportHandle()).exposeBytes()).toString("base64");
    return { allocation, body: `{"raw_handle":{"b64":"${b64}"},"device_id":0,"byte_size":4096}` };
  };
  const old = await allocate("first life");
  expect(await post(region("old", "register"), old.body)).toEqual(ok);
  await old.allocation.free();
  const anew = await allocate("next life!");
  expect(anew.body).not.toBe(old.body);
  expect(await post(region("new", "register"), anew.body)).toEqual(ok);
  expect([await contents("old", 0, 10), await contents("new", 0, 10)]).toEqual(["first life", "next life!"]);
  await anew.allocation.write(0n, Buffer.from("NEXT LIFE?"));
  expect([await contents("old", 0, 10), await contents("new", 0, 10)]).toEqual(["first life", "NEXT LIFE?"]);
  expect(await post("/v2/cudasharedmemory/unregister")).toEqual(ok);
  expect((await post(region("old", "register"), old.body)).status).toBe(400);
  await anew.allocation.free();
});

test("64 bytes that are no handle are refused with the driver's error, and nothing is listed", async () => {
  const body = { raw_handle: { b64: Buffer.alloc(64, 7).toString("base64") }, device_id: 0, byte_size: 1 };
  const refused = await post(region("forged", "register"), JSON.stringify(body));
  expect(refused.status).toBe(400);
  expect(refused.text).toContain("failed to register shared memory region 'forged': invalid args");
  expect(await status()).toEqual([]);
});

test("contents are refused beyond the region, also where the allocation goes on", async () => {
  await using exporter = await startExporter(["--bytes=8192"]);
  const body = exporter.bodyLine.replace('"byte_size":8192', '"byte_size":100');
  await post(region("part", "register"), body);
  expect(await contents("part", 0, 100)).toHaveLength(100);
  expect((await request("GET", contentsUrl("part", 0, 101))).status).toBe(400);
  expect((await request("PUT", contentsUrl("part", 99, 2), "ab")).status).toBe(400);
  expect(await exporter.read(99, 2)).toEqual(Buffer.alloc(2));
  await post(region("part", "unregister"));
});
