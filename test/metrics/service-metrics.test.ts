import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { systemClock } from "../../src/core/clock.js";
import type { FaceContext, Readiness } from "../../src/core/face-context.js";
import { RegionRegistry } from "../../src/core/registry.js";
import { createRequestIds } from "../../src/core/request-ids.js";
import { ServiceMetrics } from "../../src/metrics/service-metrics.js";
import { describePython } from "../clients/python/environment.js";
import { driverError, FakeDriver } from "../helpers/fake-driver.js";
import { context, request } from "../helpers/registry-harness.js";
import { Scrape } from "./scrape.js";

function service() {
  const fake = new FakeDriver();
  let clock = 1_000_000;
  const running: { runningMs: number }[] = [];
  const measured = Object.assign(fake, {
    description: { driverVersion: "12.8" },
    runningCalls: () => running,
  });
  const metrics = new ServiceMetrics(measured, () => clock);
  const registry = new RegionRegistry({
    driver: metrics.driver,
    observers: [metrics.regions.onChange],
    clock: { ...systemClock, now: () => clock },
  });
  const state = { readiness: "ready" as Readiness, live: true };
  const face: FaceContext = {
    registry,
    info: { name: "n", version: "1.2.3", extensions: [], instanceId: "test", epoch: 1n },
    readiness: () => state.readiness,
    isLive: () => state.live,
    cudaDriver: () => "emulated",
    allowClientShm: true,
    shutdown: new AbortController().signal,
    nextRequestId: createRequestIds(),
    reportFault: () => {},
    observeOperation: metrics.requests.observe,
  };
  const tick = (ms: number) => {
    clock += ms;
  };
  return { fake, metrics, registry, face, state, running, tick, render: () => metrics.render(face) };
}

describePython("metrics as Prometheus reads them", ["prometheus"], ({ prometheus }) => {
  const scrape = async ({ render }: ReturnType<typeof service>) => Scrape.parse(prometheus, await render());

  test("regions, bytes, mappings and pins are told by device, and age from the oldest", async () => {
    const it = service();
    const allocation = it.fake.allocate(4096);
    await it.registry.register(request("a", allocation.handle), context);
    it.tick(1500);
    await it.registry.register(request("b", allocation.handle, { byteSize: 100n }), context);
    const other = it.fake.allocate(512, 1);
    await it.registry.register(request("c", other.handle, { deviceId: 1n, byteSize: 512n }), context);
    using _first = it.registry.pin("a", null, context);
    using _second = it.registry.pin("a", null, context);
    await it.registry.unregister("a", context);
    it.tick(500);
    const told = await scrape(it);
    const on = (device: string) => ({ device, kind: "emulated" });
    expect(told.value("cudashm_regions", { ...on("0"), state: "ready" })).toBe(1);
    expect(told.value("cudashm_regions", { ...on("0"), state: "draining" })).toBe(1);
    expect(told.value("cudashm_regions", { ...on("1"), state: "ready" })).toBe(1);
    expect(told.value("cudashm_region_bytes", { ...on("0"), state: "ready" })).toBe(100);
    expect(told.value("cudashm_region_bytes", { ...on("0"), state: "draining" })).toBe(64);
    expect(told.value("cudashm_region_bytes", { ...on("1"), state: "ready" })).toBe(512);
    expect(told.value("cudashm_mappings", on("0"))).toBe(1);
    expect(told.value("cudashm_mapped_bytes", on("0"))).toBe(4096);
    expect(told.value("cudashm_mappings", on("1"))).toBe(1);
    expect(told.value("cudashm_pins", on("0"))).toBe(2);
    expect(told.value("cudashm_oldest_region_age_seconds")).toBe(2);
    const changes = (change: string) =>
      told.value("cudashm_region_changes_total", { change, protocol: "library" });
    expect([changes("registered"), changes("draining"), changes("unregistered")]).toEqual([3, 1, null]);
  });

  test("with nothing registered every device has zeros", async () => {
    const told = await scrape(service());
    for (const device of ["0", "1"]) {
      const labels = { device, kind: "emulated" };
      expect(told.value("cudashm_regions", { ...labels, state: "ready" })).toBe(0);
      expect(told.value("cudashm_region_bytes", { ...labels, state: "ready" })).toBe(0);
      expect(told.value("cudashm_mappings", labels)).toBe(0);
      expect(told.value("cudashm_mapped_bytes", labels)).toBe(0);
      expect(told.value("cudashm_pins", labels)).toBe(0);
    }
    expect(told.value("cudashm_oldest_region_age_seconds")).toBe(0);
  });

  test("the driver's calls are timed, and its refusals counted by CUDA's name", async () => {
    const it = service();
    const { handle } = it.fake.allocate(64);
    it.fake.beforeOpen = () => {
      throw driverError(1, "CUDA_ERROR_INVALID_VALUE");
    };
    await expect(it.registry.register(request("r", handle), context)).rejects.toThrow("invalid args");
    it.fake.beforeOpen = undefined;
    await it.registry.register(request("r", handle), context);
    await it.registry.unregister("r", context);
    it.running.push({ runningMs: 250 }, { runningMs: 4000 });
    const told = await scrape(it);
    const count = (call: string) =>
      told.value("cudashm_driver_call_duration_seconds_count", { call, device: "0" });
    expect([count("open"), count("close")]).toEqual([2, 1]);
    const error = "CUDA_ERROR_INVALID_VALUE";
    expect(told.value("cudashm_driver_errors_total", { call: "open", error })).toBe(1);
    expect(told.value("cudashm_driver_calls_running")).toBe(2);
    expect(told.value("cudashm_driver_longest_call_seconds")).toBe(4);
    expect(told.value("cudashm_mappings", { device: "0" })).toBe(0);
  });

  test("requests are counted by protocol, operation and code, and while they are under way", async () => {
    const it = service();
    const http = it.metrics.requests.observe("http", "register");
    const grpc = it.metrics.requests.observe("grpc", "register");
    http.end(http.begin(), "OK", "1");
    http.end(http.begin(), "INVALID_ARGUMENT", "2");
    http.end(http.begin(), "INVALID_ARGUMENT", "3");
    grpc.begin();
    const told = await scrape(it);
    const of = (protocol: string, code: string) =>
      told.value("cudashm_requests_total", { protocol, operation: "register", code });
    expect([of("http", "OK"), of("http", "INVALID_ARGUMENT"), of("grpc", "OK")]).toEqual([1, 2, 0]);
    const inFlight = (protocol: string) => told.value("cudashm_requests_in_flight", { protocol });
    expect([inFlight("http"), inFlight("grpc")]).toEqual([0, 1]);
    const count = (protocol: string) =>
      told.value("cudashm_request_duration_seconds_count", { protocol, operation: "register" });
    expect([count("http"), count("grpc")]).toEqual([3, 0]);
  });

  test("readiness, liveness and what the service is", async () => {
    const it = service();
    const state = async () => {
      const told = await scrape(it);
      return [told.value("cudashm_ready"), told.value("cudashm_live")];
    };
    expect(await state()).toEqual([1, 1]);
    it.state.readiness = "not_ready";
    expect(await state()).toEqual([0, 1]);
    it.state.live = false;
    expect(await state()).toEqual([0, 0]);
    const labels = { version: "1.2.3", driver: "emulated", driver_version: "12.8" };
    expect((await scrape(it)).value("cudashm_info", labels)).toBe(1);
  });

  test("the process is told of, and nothing the parser leaves out", async () => {
    const it = service();
    const text = await it.render();
    const told = Scrape.parse(prometheus, text);
    expect(told.value("process_resident_memory_bytes")).toBeGreaterThan(1e7);
    expect(told.value("process_start_time_seconds")).toBeGreaterThan(1e9);
    expect(told.value("nodejs_eventloop_lag_seconds")).not.toBeNull();
    const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    expect(told.families.flatMap(({ samples }) => samples)).toHaveLength(lines.length);
  });
});

test("a scrape asks a driver that is not usable for nothing", async () => {
  const it = service();
  it.fake.health = { state: "unusable", reason: "no library" };
  it.fake.devicesError = new Error("asked all the same");
  expect(await it.render()).toContain("cudashm_ready 1");
});

test("docs/metrics.md has every metric with its type, labels and meaning, and no other", () => {
  interface Described {
    readonly name: string;
    readonly help: string;
    readonly type: string;
    readonly labelNames: readonly string[];
  }
  const metrics = service().metrics.register.getMetricsAsArray() as unknown as Described[];
  const own = metrics.filter(({ name }) => name.startsWith("cudashm_"));
  const rows = own.map(({ name, type, labelNames, help }) => {
    const labels = labelNames.map((label) => `\`${label}\``).join(", ");
    return `| \`${name}\` | ${type} | ${labels} | ${help} |`;
  });
  const doc = readFileSync("docs/metrics.md", "utf8");
  expect(doc.split("\n").filter((line) => line.startsWith("| `cudashm_"))).toEqual(rows);
});
