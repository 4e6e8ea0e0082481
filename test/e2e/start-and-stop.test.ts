import { spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { runCommand, startExporter, startService, testDriver } from "../helpers/cudashm.js";
import { region, request } from "../helpers/http.js";

async function busyPort() {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  return {
    port,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => listener.close(() => resolve())),
  };
}

async function freePort(): Promise<number> {
  await using listener = await busyPort();
  return listener.port;
}

test("the start-up lines are Triton's, with the real ports, and the first answer follows at once", async () => {
  await using service = await startService();
  const started = service.log.map((line) => String(line.msg)).filter((msg) => msg.startsWith("Started"));
  expect(started.sort()).toEqual([
    `Started GRPCInferenceService at ${service.grpcAddress}`,
    `Started HTTPService at ${service.httpUrl.slice("http://".length)}`,
    `Started Metrics Service at ${new URL(service.metricsUrl).host}`,
  ]);
  expect(await request("GET", `${service.httpUrl}/v2/health/live`)).toEqual({ status: 200, text: "" });
});

test.each(["SIGTERM", "SIGINT"] as const)("%s ends the service with code 0", async (signal) => {
  await using service = await startService();
  expect(await service.stop(signal)).toEqual({ code: 0, signal: null });
  expect(service.process.errorText).toBe("");
});

test("SIGTERM to npm start reaches the service, which ends with code 0", async () => {
  const options = [`--driver=${testDriver}`, "--http-port=0", "--grpc-port=0", "--metrics-port=0"];
  const npm = spawn("npm", ["start", "--silent", "--ignore-scripts", "--", ...options], {
    detached: true,
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const closed = once(npm, "close");
    const log: string[] = [];
    for await (const line of createInterface({ input: npm.stdout })) {
      log.push(line);
      if (line.includes("Started HTTPService")) {
        npm.kill();
        // The shell that npm starts must not be what takes the signal and leaves the service behind.
        expect(await once(npm, "exit")).toEqual([0, null]);
      }
    }
    await closed;
    expect(JSON.parse(log.at(-1) ?? "")).toMatchObject({ msg: "stopped" });
  } finally {
    if (npm.exitCode === null) process.kill(-(npm.pid ?? 0), "SIGKILL");
  }
});

test("SIGTERM with a parked keep-alive connection and open regions ends with code 0 well before any timeout", async () => {
  await using service = await startService();
  await using exporter = await startExporter();
  await request("POST", service.httpUrl + region("held", "register"), exporter.bodyLine);
  const { hostname, port } = new URL(service.httpUrl);
  const parked = connect(Number(port), hostname);
  parked.write("GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n");
  await once(parked, "data");
  const closed = once(parked, "close");
  const begun = performance.now();
  expect(await service.stop()).toEqual({ code: 0, signal: null });
  expect(performance.now() - begun).toBeLessThan(2000);
  await closed;
  expect(service.log.filter((line) => line.region === "held").map((line) => line.change)).toEqual([
    "registered",
    "unregistered",
  ]);
});

test("each change is one line in the log with its request's id, and none holds the handle", async () => {
  await using service = await startService();
  await using exporter = await startExporter();
  const url = service.httpUrl + region("logged", "register");
  const response = await fetch(url, { method: "POST", body: exporter.bodyLine });
  const requestId = response.headers.get("x-request-id");
  expect(requestId).toMatch(/\S/);
  expect((await fetch(url, { method: "POST", body: exporter.bodyLine })).status).toBe(400);
  await request("POST", service.httpUrl + region("logged", "unregister"));
  await service.stop();
  const lines = service.log.filter((line) => line.region === "logged");
  expect(lines).toEqual([
    expect.objectContaining({
      change: "registered",
      outcome: "ok",
      deviceId: 0,
      byteSize: 4096,
      protocol: "http",
      requestId,
      durationMs: expect.any(Number),
    }),
    expect.objectContaining({ change: "unregistered", outcome: "ok", protocol: "http" }),
  ]);
  const all = JSON.stringify(service.log);
  expect(all).not.toContain(exporter.body.raw_handle.b64.slice(0, 20));
  // A client's mistake is no fault of the service's.
  expect(service.log.filter((line) => Number(line.level) >= 50)).toEqual([]);
});

test.each(["http", "grpc", "metrics"])(
  "a %s port in use ends with code 1, a clear text, and nothing announced",
  async (face) => {
    await using busy = await busyPort();
    const ports = {
      "http-port": await freePort(),
      "grpc-port": await freePort(),
      "metrics-port": await freePort(),
      [`${face}-port`]: busy.port,
    };
    const args = Object.entries(ports).map(([flag, port]) => `--${flag}=${port}`);
    const { code, lines, errorText } = await runCommand(["serve", `--driver=${testDriver}`, ...args]);
    expect(code).toBe(1);
    expect(errorText).toBe(
      `cudashm: cannot listen on 127.0.0.1:${busy.port} for ${face}: the port is in use; stop what uses it or choose another with --${face}-port\n`,
    );
    expect(lines.filter((line) => line.includes("Started"))).toEqual([]);
  },
);

test("a second service on the ports of the first is refused, and the first goes on", async () => {
  await using service = await startService();
  const ports = [
    `--http-port=${new URL(service.httpUrl).port}`,
    `--grpc-port=${service.grpcAddress.split(":")[1]}`,
    "--metrics-port=0",
  ];
  const { code, errorText } = await runCommand(["serve", `--driver=${testDriver}`, ...ports]);
  expect({ code, refused: errorText.includes("the port is in use") }).toEqual({ code: 1, refused: true });
  expect((await request("GET", `${service.httpUrl}/v2/health/live`)).status).toBe(200);
});

test("an address that this machine has not ends with code 1 and says so", async () => {
  const { code, errorText } = await runCommand([
    "--http-address=203.0.113.7",
    "--http-port=0",
    "--grpc-port=0",
    "--metrics-port=0",
  ]);
  expect(code).toBe(1);
  expect(errorText).toBe(
    "cudashm: cannot listen on 203.0.113.7:0 for http: this machine has no such address; choose another with --http-address\n",
  );
});

test("wrong options end with code 2 and every problem in one message", async () => {
  const { code, lines, errorText } = await runCommand(["serve", "--http-port=eighty", "stray"], {
    CUDASHM_DRIVER: "rocm",
  });
  expect({ code, lines }).toEqual({ code: 2, lines: [] });
  expect(errorText).toContain("3 problems");
  expect(errorText).toContain("CUDASHM_DRIVER: expected one of auto, cuda, emulated");
});

test("a setting without effect is warned about in the log", async () => {
  await using service = await startService(["--grpc-http2-max-ping-strikes=1"], { CUDASHM_HTTP_PROT: "1" });
  await service.stop();
  expect(service.log.filter((line) => line.level === 40).map((line) => line.msg)).toEqual([
    expect.stringMatching(/^--grpc-http2-max-ping-strikes has no effect/),
    expect.stringMatching(/^CUDASHM_HTTP_PROT is no variable of this service/),
  ]);
});

test("a log that nobody reads any more does not stop the service", async () => {
  await using service = await startService();
  service.process.closeOutput();
  await using exporter = await startExporter();
  for (let i = 0; i < 3; i++) {
    expect((await request("POST", service.httpUrl + region("x", "register"), exporter.bodyLine)).status).toBe(
      200,
    );
    expect((await request("POST", service.httpUrl + region("x", "unregister"))).status).toBe(200);
  }
  expect(await service.process.kill("SIGTERM")).toEqual({ code: 0, signal: null });
});
