import { expect, test } from "vitest";
import { DriverError } from "../src/core/driver.js";
import { RegistryError } from "../src/core/errors.js";
import type { RegistryChange } from "../src/core/region.js";
import { RegionRegistry } from "../src/core/registry.js";
import {
  createLog,
  createSwitchedLog,
  type LogLevel,
  type LogSwitches,
  logChange,
  logFault,
  logRequests,
} from "../src/log.js";
import { FakeDriver } from "./helpers/fake-driver.js";
import { regionStatus } from "./helpers/region-status.js";
import { context, request } from "./helpers/registry-harness.js";

function capture(level: LogLevel = "info") {
  const lines: Record<string, unknown>[] = [];
  const log = createLog(level, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return { log, lines };
}

const region = regionStatus({
  name: "weights\n",
  deviceId: 1,
  byteSize: 2n ** 40n,
  allocationByteSize: 2n ** 41n,
  generation: 7n,
});

const change = (kind: RegistryChange["kind"], cause?: unknown): RegistryChange => ({
  kind,
  reason: "requested",
  region,
  revision: 12n,
  context: { owner: "anonymous", protocol: "grpc", requestId: "r-1" },
  durationMs: 1.23456,
  cause,
});

test("a change is one line with name, device, size, protocol, duration, outcome and request id", () => {
  const { log, lines } = capture();
  logChange(log, change("registered"));
  expect(lines).toEqual([
    {
      level: 30,
      time: expect.any(Number),
      change: "registered",
      region: "weights\n",
      deviceId: 1,
      byteSize: 2 ** 40,
      protocol: "grpc",
      reason: "requested",
      owner: "anonymous",
      requestId: "r-1",
      durationMs: 1.235,
      revision: "12",
      outcome: "ok",
      msg: "region registered",
    },
  ]);
});

test("every kind of change has its line", () => {
  const { log, lines } = capture();
  for (const kind of ["registered", "draining", "unregistered"] as const) logChange(log, change(kind));
  expect(lines.map((line) => [line.change, line.outcome, line.level])).toEqual([
    ["registered", "ok", 30],
    ["draining", "ok", 30],
    ["unregistered", "ok", 30],
  ]);
});

test("a close that failed is an error with its cause", () => {
  const { log, lines } = capture("warn");
  const refusal = { cudaError: "CUDA_ERROR_INVALID_VALUE", cudaCode: 1, hint: "why" };
  logChange(log, change("close_failed", new DriverError("cuIpcCloseMemHandle", refusal)));
  expect(lines).toEqual([
    expect.objectContaining({
      level: 50,
      change: "close_failed",
      outcome: "failed",
      err: expect.objectContaining({
        message: "cuIpcCloseMemHandle: CUDA_ERROR_INVALID_VALUE (1): why",
        cudaCode: 1,
      }),
    }),
  ]);
});

test("a register that an observer refused and that was undone does not read like an unregister", async () => {
  const { log, lines } = capture();
  const driver = new FakeDriver();
  const registry = new RegionRegistry({
    driver,
    observers: [
      (change) => logChange(log, change),
      ({ kind }) => {
        if (kind === "registered") throw new Error("journal is full");
      },
    ],
  });
  const { handle } = driver.allocate(64);
  await expect(registry.register(request("r", handle), context)).rejects.toMatchObject({ code: "INTERNAL" });
  expect(lines.map((line) => [line.change, line.outcome, line.level, line.msg])).toEqual([
    ["registered", "ok", 30, "region registered"],
    ["unregistered", "undone", 40, "register of the region was undone"],
  ]);
  expect(lines[1]).toMatchObject({ err: { stack: expect.stringContaining("journal is full") } });
});

test("a fault is told with its request, its cause and the cause's cause", () => {
  const { log, lines } = capture("warn");
  const error = new RegistryError("INTERNAL", "outer", { cause: new Error("inner") });
  logFault(log, { requestId: "r-9", protocol: "http", error });
  const err = expect.objectContaining({ stack: expect.stringContaining("inner") });
  expect(lines).toEqual([expect.objectContaining({ level: 50, requestId: "r-9", protocol: "http", err })]);
});

test("below its level the log is silent", () => {
  const { log, lines } = capture("warn");
  logChange(log, change("registered"));
  expect(lines).toEqual([]);
});

function switched(switches: Partial<LogSwitches>): string[] {
  const told: string[] = [];
  const all = { logError: true, logWarning: true, logInfo: true, logVerbose: 0 };
  const stream = { write: (line: string) => void told.push(JSON.parse(line).msg) };
  const log = createSwitchedLog({ ...all, ...switches }, stream);
  for (const level of ["debug", "info", "warn", "error", "fatal"] as const) log[level](level);
  return told;
}

test.each([
  [{}, ["info", "warn", "error", "fatal"]],
  [{ logVerbose: 1 }, ["debug", "info", "warn", "error", "fatal"]],
  [{ logInfo: false }, ["warn", "error", "fatal"]],
  [{ logInfo: false, logVerbose: 1 }, ["debug", "warn", "error", "fatal"]],
  [{ logWarning: false }, ["info", "error", "fatal"]],
  [{ logInfo: false, logWarning: false }, ["error", "fatal"]],
  [{ logError: false, logWarning: false }, ["info", "fatal"]],
  [{ logError: false, logWarning: false, logInfo: false }, ["fatal"]],
])("with %j the log has exactly %j", (switches, expected) => {
  expect(switched(switches)).toEqual(expected);
});

test("a request is a line with protocol, operation, code, id and how long it took", () => {
  const { log, lines } = capture("debug");
  const operation = logRequests(log)("grpc", "cudaSharedMemoryRegister");
  operation.end(operation.begin(), "ALREADY_EXISTS", "r-3");
  expect(lines).toEqual([
    {
      level: 20,
      time: expect.any(Number),
      protocol: "grpc",
      operation: "cudaSharedMemoryRegister",
      code: "ALREADY_EXISTS",
      requestId: "r-3",
      durationMs: expect.any(Number),
      msg: "request answered",
    },
  ]);
});
