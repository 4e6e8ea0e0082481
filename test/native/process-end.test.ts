import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { DeviceAllocation } from "../../src/native/device-memory.js";
import { createCudaDriver } from "../../src/native/driver-selection.js";
import { callLog } from "../helpers/call-log.js";

let allocation: DeviceAllocation;
let handle: string;

// This process is the exporter of what the processes below import.
beforeAll(async () => {
  allocation = await createCudaDriver({ preference: "emulated", contextLingerMs: 0 }).allocate(0, 4096n);
  await allocation.write(0n, Uint8Array.of(7));
  handle = Buffer.from((await allocation.exportHandle()).exposeBytes()).toString("base64");
});
afterAll(() => allocation.free());

/** How a process that runs `scenario` ends, and what its driver was called for. */
async function run(scenario: string, variables: Record<string, string> = {}, of = "driver-process") {
  const fixture = fileURLToPath(new URL(`../fixtures/${of}.mjs`, import.meta.url));
  using log = callLog();
  const started = performance.now();
  const child = spawn(process.execPath, ["--expose-gc", fixture, scenario, handle], {
    env: { ...process.env, ...log.variables, ...variables },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const [code, signal] = await once(child, "close");
  return {
    end: { code, signal },
    stderr,
    ms: performance.now() - started,
    opens: log.count("cuIpcOpenMemHandle_v2"),
    closes: log.count("cuIpcCloseMemHandle"),
  };
}

const clean = { end: { code: 0, signal: null }, stderr: "" };

test.each(["exit", "drain"])("a process with 100 open mappings ends well: %s", async (scenario) => {
  expect(await run(scenario)).toMatchObject({ ...clean, opens: 100, closes: 0 });
});

test("an uncaught exception with 100 open mappings is an ordinary one", async () => {
  const { end, stderr } = await run("throw");
  expect(end).toEqual({ code: 1, signal: null });
  expect(stderr).toContain("Error: nobody catches this");
});

test("a process can exit while calls run", async () => {
  expect(await run("exit-during-calls")).toMatchObject(clean);
});

test.each([
  ["exit-during-hung-open", "cuIpcOpenMemHandle_v2"],
  ["exit-during-hung-initialise", "cuInit"],
  ["worker-terminated-during-hung-open", "cuIpcOpenMemHandle_v2"],
])("a driver call that never returns keeps no process: %s", async (scenario, call) => {
  const result = await run(scenario, { CUDASHM_EMULATED_DELAYS: `${call}=600000` });
  expect(result).toMatchObject(clean);
  expect(result.ms).toBeLessThan(10_000);
});

test("the main thread and four workers share the driver, and a terminated worker's mappings are closed", async () => {
  expect(await run("workers")).toMatchObject({ ...clean, opens: 81, closes: 81 });
});

test("the addon outlives the only worker that loaded it", async () => {
  expect(await run("worker-alone")).toMatchObject({ ...clean, opens: 21, closes: 21 });
});

test("mappings that arrive after their worker is gone are closed", async () => {
  const { opens, closes, ...rest } = await run("worker-terminated-during-calls");
  expect(rest).toMatchObject(clean);
  expect(opens).toBeGreaterThan(0);
  expect(closes).toBe(opens);
});

test("a worker that ends by an exception leaves no mapping open", async () => {
  expect(await run("worker-throws")).toMatchObject({ ...clean, opens: 20, closes: 20 });
});

test("what was opened is closed in the end, whichever call the driver refuses on the way", async () => {
  const result = await run("every call", {}, "fault-process");
  expect(result).toMatchObject(clean);
  expect(result.opens).toBeGreaterThan(100);
  expect(result.closes).toBe(result.opens);
});

test("a driver that is lost at whichever call ends no process", async () => {
  expect(await run("every call for good", {}, "fault-process")).toMatchObject(clean);
});

test("copies run to their end while their mapping is closed or let go of", async () => {
  expect(await run("close-during-copies")).toMatchObject({ ...clean, opens: 160, closes: 160 });
});

test("a mapping that nobody holds is closed when it is collected", async () => {
  expect(await run("collected")).toMatchObject({ ...clean, opens: 50, closes: 50 });
});
