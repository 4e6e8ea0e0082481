import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ServiceProcess } from "../../src/cli/service-process.js";
import { startService, testDriver } from "../helpers/cudashm.js";
import { describePython } from "./python/environment.js";
import { type PytestEnd, runPytest } from "./python/run-python.js";

const main = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
// One run of all of them, where many tests share few cores.
const timeoutMs = 240_000;
const twoDevices = { CUDASHM_EMULATED_DEVICE_COUNT: "2" };

describePython("the official Python clients", ["clients", "cuda-newest"], (pythons) => {
  let service: ServiceProcess;
  let disabled: ServiceProcess;
  let run: PytestEnd;
  beforeAll(async () => {
    [service, disabled] = await Promise.all([
      startService(["--allow-contents"], twoDevices),
      startService(["--allow-client-shm=false"], twoDevices),
    ]);
    run = await runPytest(pythons.clients, {
      ...twoDevices,
      TEST_HTTP_ADDRESS: new URL(service.httpUrl).host,
      TEST_GRPC_ADDRESS: service.grpcAddress,
      TEST_DISABLED_HTTP_ADDRESS: new URL(disabled.httpUrl).host,
      TEST_DISABLED_GRPC_ADDRESS: disabled.grpcAddress,
      TEST_ALLOCATE_COMMAND: JSON.stringify([process.execPath, main, "allocate", `--driver=${testDriver}`]),
      TEST_CLIENTS_PYTHON: pythons.clients,
      TEST_NEWEST_PYTHON: pythons["cuda-newest"],
    });
  }, timeoutMs);
  afterAll(async () => {
    expect(await service.stop()).toEqual({ code: 0, signal: null });
    expect(await disabled.stop()).toEqual({ code: 0, signal: null });
    // No client's fault is a fault of the service.
    const problems = [...service.log, ...disabled.log].filter(({ level }) => Number(level) >= 50);
    expect(problems).toEqual([]);
  });

  test.each([
    ["register, list and unregister", "test_regions.py"],
    ["are told why they are refused", "test_refusals.py"],
    ["use any name", "test_names.py"],
    ["send headers, query parameters, a log-in and deadlines", "test_requests.py"],
    ["share memory made by tritonclient.utils.cuda_shared_memory", "test_cuda_shared_memory.py"],
    ["go through the steps of Triton's shared memory tests", "test_triton_flow.py"],
  ])("%s", (_, file) => {
    const results = run.results.filter((each) => each.file === file);
    expect(results, run.output).not.toEqual([]);
    expect(
      results.filter(({ result }) => result !== "PASSED"),
      run.output,
    ).toEqual([]);
  });

  test("every test ran, and no other failed", () => {
    expect(run.code, run.output).toBe(0);
    expect(run.output).toMatch(new RegExp(`^=+ ${run.results.length} passed in .*=+$`, "m"));
  });
});
