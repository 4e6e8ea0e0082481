import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { startExporter, startService, testDriver } from "../helpers/cudashm.js";
import { region, request } from "../helpers/http.js";
import { inferenceClient } from "../helpers/inference-client.js";
import { told } from "../helpers/secrets.js";
import { startCollector, startSilentCollector, variablesFor } from "../tracing/collector.js";

const traceId = (digit: string) => digit.repeat(32);
const parentId = "b7ad6b7169203331";
const traceparent = (id: string) => `00-${id}-${parentId}-01`;
const server = 2;
const internal = 1;

test("requests of both faces are sent as spans of the client's trace, with the driver's calls under them", async () => {
  await using collector = await startCollector();
  await using service = await startService(["--id=a-service"], collector.variables);
  await using exporter = await startExporter(["--bytes=4096"]);
  const byHttp = await fetch(service.httpUrl + region("a-name", "register"), {
    method: "POST",
    body: exporter.bodyLine,
    headers: { traceparent: traceparent(traceId("1")), tracestate: "vendor=1", "x-request-id": "mine" },
  });
  expect(byHttp.status).toBe(200);
  using grpc = inferenceClient(service.grpcAddress);
  const metadata = { traceparent: traceparent(traceId("2")) };
  await grpc.call("CudaSharedMemoryUnregister", { name: "a-name" }, undefined, metadata);
  const raw_handle = Buffer.alloc(64, 7);
  const forged = { name: "b-name", raw_handle, byte_size: 64 };
  const refused = { traceparent: traceparent(traceId("3")) };
  await expect(grpc.call("CudaSharedMemoryRegister", forged, undefined, refused)).rejects.toThrow();
  expect(await service.stop()).toEqual({ code: 0, signal: null });

  const of = (id: string) => collector.spans.filter((span) => span.traceId === traceId(id));
  const named = (id: string, name: string) => of(id).find((span) => span.name === name);
  const register = named("1", "POST /v2/cudasharedmemory/region/{region_name}/register");
  expect(register).toMatchObject({
    parentSpanId: parentId,
    traceState: "vendor=1",
    kind: server,
    attributes: {
      "http.request.method": "POST",
      "http.route": "/v2/cudasharedmemory/region/{region_name}/register",
      "http.response.status_code": 200,
      "cudashm.request_id": "mine",
    },
  });
  expect(named("1", "driver open")).toMatchObject({
    parentSpanId: register?.spanId,
    kind: internal,
    attributes: { "cudashm.driver": testDriver, "cudashm.device": 0, "cudashm.outcome": "OK" },
  });
  const unregister = named("2", "inference.GRPCInferenceService/CudaSharedMemoryUnregister");
  expect(unregister).toMatchObject({
    parentSpanId: parentId,
    kind: server,
    attributes: {
      "rpc.system": "grpc",
      "rpc.service": "inference.GRPCInferenceService",
      "rpc.method": "CudaSharedMemoryUnregister",
      "rpc.grpc.status_code": 0,
    },
  });
  expect(named("2", "driver close")).toMatchObject({ parentSpanId: unregister?.spanId });
  const refusal = named("3", "inference.GRPCInferenceService/CudaSharedMemoryRegister");
  expect(refusal).toMatchObject({ attributes: { "rpc.grpc.status_code": 3 } });
  expect(named("3", "driver open")).toMatchObject({
    parentSpanId: refusal?.spanId,
    attributes: { "cudashm.outcome": "CUDA_ERROR_INVALID_VALUE" },
  });
  // A client's fault is no error of the service.
  expect(collector.spans.filter(({ status }) => (status.code ?? 0) !== 0)).toEqual([]);
  expect([of("1").length, of("2").length, of("3").length]).toEqual([2, 2, 2]);
  expect(collector.resource()).toMatchObject({ "service.name": "a-service" });
  expect([...collector.paths]).toEqual(["/v1/traces"]);
  expect(JSON.stringify(collector.spans)).not.toMatch(/[ab]-name/);
});

test("status, wrong paths and a service that is not ready are spans with the status that was answered", async () => {
  await using collector = await startCollector();
  const missing = ["--driver=cuda", "--driver-library=/nowhere/libcuda.so.1"];
  await using service = await startService(missing, collector.variables);
  const statuses: number[] = [];
  for (const path of ["/v2/health/ready", "/v2/cudasharedmemory/status", "/no/such/path"]) {
    statuses.push((await request("GET", service.httpUrl + path)).status);
  }
  statuses.push((await request("DELETE", `${service.httpUrl}/v2`)).status);
  statuses.push((await request("POST", `${service.httpUrl}/v2/systemsharedmemory/register`)).status);
  expect(await service.stop()).toEqual({ code: 0, signal: null });
  const seen = collector.spans.map(({ name, attributes, status }) => [
    name,
    attributes["http.response.status_code"],
    status.code === 2,
  ]);
  expect(statuses).toEqual([400, 200, 404, 405, 501]);
  expect(seen).toEqual([
    ["GET /v2/health/ready", 400, false],
    ["GET /v2/cudasharedmemory/status", 200, false],
    ["GET", 404, false],
    ["DELETE", 405, false],
    ["POST /v2/systemsharedmemory/register", 501, true],
  ]);
});

test("OpenTelemetry's variables name the service, and no option is sent along", async () => {
  await using collector = await startCollector();
  await using service = await startService(["--http-restricted-api=health:x-key=open-sesame"], {
    ...collector.variables,
    OTEL_SERVICE_NAME: "of-the-variable",
    OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
    OTEL_NODE_RESOURCE_DETECTORS: "all",
  });
  await request("GET", `${service.httpUrl}/v2`);
  expect(await service.stop()).toEqual({ code: 0, signal: null });
  const resource = collector.resource();
  expect(resource).toMatchObject({
    "service.name": "of-the-variable",
    "deployment.environment.name": "test",
  });
  expect(Object.keys(resource).filter((key) => key.startsWith("process."))).toEqual(["process.pid"]);
  expect(JSON.stringify(resource)).not.toContain("open-sesame");
});

test("a collector that is away costs a warning and nothing else", async () => {
  const closed = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => closed.once("listening", resolve));
  const { port } = closed.address() as { port: number };
  await new Promise((resolve) => closed.close(resolve));
  await using service = await startService([], {
    ...variablesFor(port),
    OTEL_EXPORTER_OTLP_TIMEOUT: "900",
    OTEL_LOG_LEVEL: "debug",
  });
  expect((await request("GET", `${service.httpUrl}/v2`)).status).toBe(200);
  expect(await service.stop()).toEqual({ code: 0, signal: null });
  told(service.log);
  const messages = service.log.map(({ msg }) => String(msg));
  expect(messages).toContain("stopped");
  expect(messages.filter((text) => /OpenTelemetry|traces/.test(text))).toEqual([
    `OpenTelemetry: connect ECONNREFUSED 127.0.0.1:${port}`,
  ]);
  expect(service.process.errorText).toBe("");
});

test("a collector that does not answer holds up no request, and the stop for two seconds at most", async () => {
  await using collector = await startSilentCollector();
  await using service = await startService([], collector.variables);
  expect((await request("GET", `${service.httpUrl}/v2`)).status).toBe(200);
  await collector.asked;
  expect((await request("GET", `${service.httpUrl}/v2`)).status).toBe(200);
  const startedAt = performance.now();
  expect(await service.stop()).toEqual({ code: 0, signal: null });
  // The exporter by itself would wait for ten.
  expect(performance.now() - startedAt).toBeLessThan(8000);
  const messages = service.log.map(({ msg }) => String(msg));
  expect(messages.slice(-2)).toEqual(["stopped", "the last traces could not be sent in time and are lost"]);
});

const teller = fileURLToPath(new URL("../fixtures/tell-opentelemetry.cjs", import.meta.url));

async function packagesLoaded(args: readonly string[], variables: Record<string, string>) {
  await using service = await startService(args, { ...variables, NODE_OPTIONS: `--require=${teller}` });
  await request("GET", `${service.httpUrl}/v2`);
  await service.stop();
  return JSON.parse(/OpenTelemetry: (.*)/.exec(service.process.errorText)?.[1] ?? "null");
}

test.each([
  {},
  { OTEL_TRACES_EXPORTER: "none" },
  { OTEL_TRACES_EXPORTER: "otlp", OTEL_SDK_DISABLED: "true" },
])("with the variables %j nothing of OpenTelemetry is loaded", async (variables) => {
  expect(await packagesLoaded(["--allow-metrics=false"], variables)).toEqual([]);
});

test("the library of the metrics loads OpenTelemetry's interface, and nothing else of it", async () => {
  expect(await packagesLoaded([], {})).toEqual(["api"]);
});

test("where traces are asked for, OpenTelemetry is loaded", async () => {
  expect(await packagesLoaded([], variablesFor(9))).toContain("sdk-node");
});
