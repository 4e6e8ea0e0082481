import { expect, test } from "vitest";
import { describePython } from "../clients/python/environment.js";
import { runCommand, startExporter, startService } from "../helpers/cudashm.js";
import { region, request } from "../helpers/http.js";
import { inferenceClient } from "../helpers/inference-client.js";
import { Scrape } from "../metrics/scrape.js";

describePython("the metrics of a running service", ["prometheus"], ({ prometheus }) => {
  test("tell of requests over both faces, of what they left, and hold no region's name", async () => {
    await using service = await startService();
    await using exporter = await startExporter(["--bytes=5000"]);
    const scrape = async () => (await request("GET", service.metricsUrl)).text;
    const first = Scrape.parse(prometheus, await scrape());
    const registers = (told: Scrape, protocol: string, code: string) =>
      told.value("cudashm_requests_total", { protocol, operation: "cudaSharedMemoryRegister", code });
    expect([registers(first, "http", "OK"), registers(first, "grpc", "OK")]).toEqual([0, 0]);
    expect(first.value("cudashm_ready")).toBe(1);
    expect(first.value("cudashm_regions", { device: "0", kind: "emulated", state: "ready" })).toBe(0);

    const post = (path: string, body?: string) => request("POST", service.httpUrl + path, body);
    await post(region("a-name", "register"), exporter.bodyLine);
    await post(region("a-name", "register"), exporter.bodyLine);
    await post(region("bad", "register"), "{");
    await post("/no/such/path");
    using grpc = inferenceClient(service.grpcAddress);
    const raw_handle = Buffer.from(exporter.body.raw_handle.b64, "base64");
    await grpc.call("CudaSharedMemoryRegister", { name: "b-name", raw_handle, byte_size: 64 });
    const forged = { name: "c-name", raw_handle: Buffer.alloc(64, 7), byte_size: 64 };
    await expect(grpc.call("CudaSharedMemoryRegister", forged)).rejects.toThrow();
    const text = await scrape();
    const told = Scrape.parse(prometheus, text);
    expect(registers(told, "http", "OK")).toBe(1);
    expect(registers(told, "http", "ALREADY_EXISTS")).toBe(1);
    expect(registers(told, "http", "INVALID_ARGUMENT")).toBe(1);
    expect(registers(told, "grpc", "OK")).toBe(1);
    expect(registers(told, "grpc", "INVALID_ARGUMENT")).toBe(1);
    const unmatched = { protocol: "http", operation: "unmatched", code: "UNIMPLEMENTED" };
    expect(told.value("cudashm_requests_total", unmatched)).toBe(1);
    const durations = { protocol: "http", operation: "cudaSharedMemoryRegister" };
    expect(told.value("cudashm_request_duration_seconds_count", durations)).toBe(3);
    expect(told.value("cudashm_requests_in_flight", { protocol: "http" })).toBe(0);
    expect(told.value("cudashm_regions", { device: "0", state: "ready" })).toBe(2);
    expect(told.value("cudashm_region_bytes", { device: "0", state: "ready" })).toBe(5064);
    expect(told.value("cudashm_mappings", { device: "0" })).toBe(1);
    expect(told.value("cudashm_mapped_bytes", { device: "0" })).toBe(5000);
    expect(told.value("cudashm_driver_call_duration_seconds_count", { call: "open", device: "0" })).toBe(2);
    const error = "CUDA_ERROR_INVALID_VALUE";
    expect(told.value("cudashm_driver_errors_total", { call: "open", error })).toBe(1);
    for (const name of ["a-name", "b-name", "c-name"]) expect(text).not.toContain(name);

    await post("/v2/cudasharedmemory/unregister");
    const last = Scrape.parse(prometheus, await scrape());
    expect(last.value("cudashm_mapped_bytes", { device: "0" })).toBe(0);
    expect(last.value("cudashm_region_changes_total", { change: "unregistered", protocol: "http" })).toBe(2);
    expect(await service.stop()).toEqual({ code: 0, signal: null });
  });
});

test("with metrics off nothing listens for them, and the rest is as before", async () => {
  await using service = await startService(["--allow-metrics=false"]);
  expect(service.metricsUrl).toBe("");
  expect((await request("GET", `${service.httpUrl}/v2/health/ready`)).status).toBe(200);
  expect(await service.stop()).toEqual({ code: 0, signal: null });
});

test("metrics on another address that this machine has not end the start with code 1", async () => {
  const ports = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"];
  const { code, errorText } = await runCommand(["serve", ...ports, "--metrics-address=203.0.113.7"]);
  expect({ code, errorText }).toEqual({
    code: 1,
    errorText:
      "cudashm: cannot listen on 203.0.113.7:0 for metrics: this machine has no such address; choose another with --metrics-address\n",
  });
});
