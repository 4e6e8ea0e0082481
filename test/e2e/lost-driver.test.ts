import { expect, test } from "vitest";
import { startExporter, startService, testDriver } from "../helpers/cudashm.js";
import { region, request } from "../helpers/http.js";
import { inferenceClient } from "../helpers/inference-client.js";

test.skipIf(testDriver !== "emulated")(
  "after a fault that only a new process mends the service lives, is not ready at once, and says what to do",
  async () => {
    await using service = await startService(["--allow-contents", "--liveness-grace-secs=600"], {
      CUDASHM_EMULATED_FAULTS: "cuMemcpyDtoH_v2@1=700",
    });
    using grpc = inferenceClient(service.grpcAddress);
    await using exporter = await startExporter();
    const call = (method: string, path: string, body?: string) =>
      request(method, service.httpUrl + path, body);
    const lost = /CUDA_ERROR_ILLEGAL_ADDRESS \(700\): restart the service/;

    expect((await call("POST", region("r", "register"), exporter.bodyLine)).status).toBe(200);
    expect((await call("GET", "/v2/health/ready")).status).toBe(200);
    const read = await call("GET", "/v1/regions/r/contents");
    expect([read.status, read.text]).toEqual([503, expect.stringMatching(lost)]);

    expect(await call("GET", "/v2/health/ready")).toEqual({ status: 400, text: "" });
    expect(await call("GET", "/v2/health/live")).toEqual({ status: 200, text: "" });
    expect(await grpc.call("ServerReady", {})).toEqual({ ready: false });
    const register = {
      name: "s",
      raw_handle: Buffer.from(exporter.body.raw_handle.b64, "base64"),
      byte_size: 1,
    };
    await expect(grpc.call("CudaSharedMemoryRegister", register)).rejects.toMatchObject({
      code: 14,
      details: expect.stringMatching(lost),
    });
    expect((await call("GET", "/v2/cudasharedmemory/status")).text).toContain('"name":"r"');
    const unregistered = await call("POST", region("r", "unregister"));
    expect([unregistered.status, unregistered.text]).toEqual([
      500,
      expect.stringMatching(/failed to close CUDA IPC handle: .*restart the service/),
    ]);

    expect(await service.stop()).toEqual({ code: 0, signal: null });
    const told = service.log.filter((line) => String(line.msg).startsWith("no usable CUDA driver"));
    expect(told).toEqual([expect.objectContaining({ level: 40, reason: expect.stringMatching(lost) })]);
  },
);

test.skipIf(testDriver !== "emulated")(
  "after the grace it is not live either, over both faces, so that a supervisor starts another process",
  async () => {
    await using service = await startService(["--allow-contents", "--liveness-grace-secs=0"], {
      CUDASHM_EMULATED_FAULTS: "cuMemcpyDtoH_v2@1=700",
    });
    using grpc = inferenceClient(service.grpcAddress);
    await using exporter = await startExporter();
    const call = (method: string, path: string, body?: string) =>
      request(method, service.httpUrl + path, body);
    await call("POST", region("r", "register"), exporter.bodyLine);
    expect(await call("GET", "/v2/health/live")).toEqual({ status: 200, text: "" });
    expect(await grpc.call("ServerLive", {})).toEqual({ live: true });

    expect((await call("GET", "/v1/regions/r/contents")).status).toBe(503);
    expect(await call("GET", "/v2/health/live")).toEqual({ status: 400, text: "" });
    expect(await call("GET", "/v2/health/ready")).toEqual({ status: 400, text: "" });
    expect(await grpc.call("ServerLive", {})).toEqual({ live: false });
    expect((await request("GET", service.metricsUrl)).text).toMatch(/^cudashm_live 0$/m);

    expect(await service.stop()).toEqual({ code: 0, signal: null });
    expect(service.log.filter((line) => String(line.msg).startsWith("no longer live"))).toHaveLength(1);
  },
);
