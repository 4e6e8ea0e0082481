import { describe, expect, test } from "vitest";
import { callLog } from "../helpers/call-log.js";
import { startExporter, startService, testDriver } from "../helpers/cudashm.js";
import { region, request } from "../helpers/http.js";
import { inferenceClient } from "../helpers/inference-client.js";

const opens = "cuIpcOpenMemHandle_v2";

function delays(milliseconds: number, ...calls: number[]): Record<string, string> {
  return { CUDASHM_EMULATED_DELAYS: calls.map((k) => `${opens}@${k}=${milliseconds}`).join(",") };
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

describe.skipIf(testDriver !== "emulated")("a slow driver", () => {
  test("seven opens of 5 s on one device delay no other call by more than 50 ms", async () => {
    await using service = await startService([], {
      ...delays(5000, 2, 3, 4, 5, 6, 7, 8),
      // One thread for all that Node does in its pool: driver calls must not be there.
      UV_THREADPOOL_SIZE: "1",
    });
    using grpc = inferenceClient(service.grpcAddress);
    await using quick = await startExporter();
    await using slow = await startExporter();
    // A handle of its own for each, since those of one allocation share their open.
    const others = await Promise.all(Array.from({ length: 6 }, () => startExporter()));
    const post = (path: string, body?: string) => request("POST", service.httpUrl + path, body);
    const calls: Record<string, () => Promise<unknown>> = {
      status: () => request("GET", `${service.httpUrl}/v2/cudasharedmemory/status`),
      ready: () => request("GET", `${service.httpUrl}/v2/health/ready`),
      "status over gRPC": () => grpc.call("CudaSharedMemoryStatus", {}),
      "ready over gRPC": () => grpc.call("ServerReady", {}),
      pair: async () => {
        expect((await post(region("quick", "register"), quick.bodyLine)).status).toBe(200);
        expect((await post(region("quick", "unregister"))).status).toBe(200);
      },
    };
    // Each once, so that what is timed below is neither a first connection nor a first context.
    for (const call of Object.values(calls)) await call();

    let slowDone = 0;
    const registers = [slow, ...others].map(async (exporter, i) => {
      const answer = await post(region(`slow-${i}`, "register"), exporter.bodyLine);
      slowDone++;
      return answer.status;
    });
    const names = [slow, ...others].map((_, i) => `slow-${i}`);
    await taken(service.httpUrl, names, quick.bodyLine);
    for (const [name, call] of Object.entries(calls)) {
      const times: number[] = [];
      for (let i = 0; i < 9; i++) {
        const begun = performance.now();
        await call();
        times.push(performance.now() - begun);
      }
      expect({ name, within50ms: median(times) < 50 }).toEqual({ name, within50ms: true });
    }
    expect(slowDone).toBe(0);
    expect(await Promise.all(registers)).toEqual(Array(7).fill(200));
    await Promise.all(others.map((exporter) => exporter.end()));
  });

  test("a register whose client has gone is undone once the driver answers", async () => {
    using log = callLog();
    await using service = await startService(["--context-linger-secs=0"], {
      ...log.variables,
      ...delays(400, 1),
    });
    await using exporter = await startExporter();
    const gone = new AbortController();
    const url = service.httpUrl + region("gone", "register");
    const register = fetch(url, { method: "POST", body: exporter.bodyLine, signal: gone.signal });
    await taken(service.httpUrl, ["gone"], exporter.bodyLine);
    gone.abort();
    await expect(register).rejects.toThrow();
    // The next register of the name waits for the first one to be undone.
    expect((await request("POST", url, exporter.bodyLine)).status).toBe(200);
    expect(log.count("cuIpcOpenMemHandle_v2")).toBe(2);
    expect(log.count("cuIpcCloseMemHandle")).toBe(1);
    expect(await service.stop()).toEqual({ code: 0, signal: null });
    expect(log.count("cuIpcCloseMemHandle")).toBe(2);
    expect(service.log.filter((line) => line.region === "gone")).toHaveLength(2);
  });

  test("a deadline that passes during an open is answered at once and undone", async () => {
    using log = callLog();
    await using service = await startService([], { ...log.variables, ...delays(2500, 1) });
    await using exporter = await startExporter();
    using client = inferenceClient(service.grpcAddress);
    const register = {
      name: "late",
      raw_handle: Buffer.from(exporter.body.raw_handle.b64, "base64"),
      device_id: 0,
      byte_size: 64,
    };
    // The connection is made first, so that the deadline passes in the driver and not on the way there.
    await client.call("ServerLive", {});
    await expect(client.call("CudaSharedMemoryRegister", register, 1000)).rejects.toMatchObject({ code: 4 });
    expect(await service.stop()).toEqual({ code: 0, signal: null });
    expect(log.count("cuIpcOpenMemHandle_v2")).toBe(1);
    expect(log.count("cuIpcCloseMemHandle")).toBe(1);
  });

  test("SIGTERM during an open answers 503 at once and ends with code 0 when the driver has answered", async () => {
    using log = callLog();
    await using service = await startService([], { ...log.variables, ...delays(400, 1) });
    await using exporter = await startExporter();
    const register = request("POST", service.httpUrl + region("cut", "register"), exporter.bodyLine);
    await taken(service.httpUrl, ["cut"], exporter.bodyLine);
    expect(await service.stop()).toEqual({ code: 0, signal: null });
    expect(await register).toEqual({ status: 503, text: '{"error":"Server exiting"}' });
    expect(log.count("cuIpcOpenMemHandle_v2")).toBe(1);
    expect(log.count("cuIpcCloseMemHandle")).toBe(1);
  });

  test("a driver call that never returns ends the service with code 1 after the exit timeout, and is named", async () => {
    await using service = await startService(["--exit-timeout-secs=1"], delays(600_000, 1));
    await using exporter = await startExporter();
    const register = request("POST", service.httpUrl + region("hung", "register"), exporter.bodyLine);
    await taken(service.httpUrl, ["hung"], exporter.bodyLine);
    expect(await service.stop()).toEqual({ code: 1, signal: null });
    expect((await register).status).toBe(503);
    expect(service.log.at(-1)).toMatchObject({
      level: 60,
      msg: "could not stop within 1 s (--exit-timeout-secs)",
      waitingFor: [expect.stringMatching(/^the driver's answer to .+ on device 0, for \d+ ms$/)],
    });
  });

  test("a second signal does not wait", async () => {
    await using service = await startService([], delays(600_000, 1));
    await using exporter = await startExporter();
    const register = request("POST", service.httpUrl + region("hung", "register"), exporter.bodyLine);
    await taken(service.httpUrl, ["hung"], exporter.bodyLine);
    const first = service.stop("SIGTERM");
    // Its answer shows that the first signal has arrived.
    await register;
    expect(await service.process.kill("SIGINT")).toEqual({ code: 130, signal: null });
    await first;
  });
});

/** Resolves once every name is taken: a register of size 0 is refused for that only after a name that is free. */
async function taken(url: string, names: readonly string[], body: string): Promise<void> {
  const empty = body.replace(/"byte_size":\d+/, '"byte_size":0');
  for (const name of names) {
    let text = "";
    while (!text.includes("already in manager")) {
      ({ text } = await request("POST", url + region(name, "register"), empty));
    }
  }
}
