import { expect, test } from "vitest";
import { runCommand, startExporter, startService } from "../helpers/cudashm.js";
import { region, request } from "../helpers/http.js";
import { inferenceClient } from "../helpers/inference-client.js";

// Named by path, so that a machine with a GPU runs this test as well.
const noDriver = ["--driver=cuda", "--driver-library=/nonexistent/libcuda.so.1"];
const body = JSON.stringify({
  raw_handle: { b64: Buffer.alloc(64).toString("base64") },
  device_id: 0,
  byte_size: 1,
});

test("with --driver cuda and no driver the service lives, is not ready, and refuses registers with the reason", async () => {
  await using service = await startService(noDriver);
  const call = (method: string, path: string, payload?: string) =>
    request(method, service.httpUrl + path, payload);
  const refused = await call("POST", region("r", "register"), body);
  expect(refused.status).toBe(503);
  expect(refused.text).toContain("/nonexistent/libcuda.so.1");
  expect(await call("GET", "/v2/health/live")).toEqual({ status: 200, text: "" });
  expect(await call("GET", "/v2/health/ready")).toEqual({ status: 400, text: "" });
  expect(await call("GET", "/v2/cudasharedmemory/status")).toEqual({ status: 200, text: "[]" });
  expect(await call("POST", region("r", "unregister"))).toEqual({ status: 200, text: "" });
  expect(await call("POST", "/v2/cudasharedmemory/unregister")).toEqual({ status: 200, text: "" });
  const metadata = JSON.parse((await call("GET", "/v2")).text) as { cuda_driver: string };
  expect(metadata.cuda_driver).toMatch(/^unavailable: .*\/nonexistent\/libcuda\.so\.1/);
  expect(await service.stop()).toEqual({ code: 0, signal: null });
  expect(service.log.filter((line) => Number(line.level) >= 50)).toEqual([]);
  expect(service.log).toContainEqual(
    expect.objectContaining({ level: 40, msg: expect.stringMatching(/^no usable CUDA driver/) }),
  );
});

test("the same over gRPC", async () => {
  await using service = await startService(noDriver);
  using client = inferenceClient(service.grpcAddress);
  const register = { name: "r", raw_handle: Buffer.alloc(64), device_id: 0, byte_size: 1 };
  await expect(client.call("CudaSharedMemoryRegister", register)).rejects.toMatchObject({
    code: 14,
    details: expect.stringContaining("/nonexistent/libcuda.so.1"),
  });
  expect(await client.call("ServerLive", {})).toEqual({ live: true });
  expect(await client.call("ServerReady", {})).toMatchObject({ ready: false });
  expect(await client.call("CudaSharedMemoryStatus", { name: "" })).toMatchObject({});
  await client.call("CudaSharedMemoryUnregister", { name: "" });
});

test("--driver auto serves on the emulated driver where there is no other, and warns about it", async () => {
  await using service = await startService(["--driver=auto", "--driver-library=/nonexistent/libcuda.so.1"]);
  await using exporter = await startExporter(["--driver=emulated"]);
  const registered = await request("POST", service.httpUrl + region("r", "register"), exporter.bodyLine);
  expect(registered).toEqual({ status: 200, text: "" });
  expect(JSON.parse((await request("GET", `${service.httpUrl}/v2`)).text)).toMatchObject({
    cuda_driver: "emulated",
  });
  await service.stop();
  const warnings = service.log.filter((line) => line.level === 40);
  expect(warnings).toEqual([expect.objectContaining({ msg: expect.stringContaining("emulated") })]);
});

test("--driver cuda refuses the emulated library", async () => {
  const folder = (await runCommand(["emulated-driver"])).lines[0];
  await using service = await startService(["--driver=cuda", `--driver-library=${folder}/libcuda.so.1`]);
  const refused = await request("POST", service.httpUrl + region("r", "register"), body);
  expect(refused.status).toBe(503);
  expect(refused.text).toContain("emulated");
});
