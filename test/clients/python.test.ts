import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ServiceProcess } from "../../src/cli/service-process.js";
import { startService, testDriver } from "../helpers/cudashm.js";
import { keepSecret, leaks } from "../helpers/secrets.js";
import { describePython } from "./python/environment.js";
import { type PytestEnd, runPytest } from "./python/run-python.js";

const main = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
// One run of all of them, where many tests share few cores.
const timeoutMs = 240_000;
const twoDevices = { CUDASHM_EMULATED_DEVICE_COUNT: "2" };
const folder = mkdtempSync(join(tmpdir(), "cudashm-python-"));
const tokenFile = join(folder, "tokens");
const everyOtherClose = [1, 3, 5, 7].map((nth) => `cuIpcCloseMemHandle@${nth}=400`);

/** How each service that the Python tests know by name is started. */
const services: Readonly<Record<string, () => Promise<ServiceProcess>>> = {
  usual: () => startService(["--allow-contents"], twoDevices),
  disabled: () => startService(["--allow-client-shm=false"], twoDevices),
  "without a device": () => startService([], { CUDASHM_EMULATED_DEVICE_COUNT: "0" }),
  "whose every other close fails": () => startService([], { CUDASHM_EMULATED_FAULTS: `${everyOtherClose}` }),
  "that wants a token": () => startService([`--token-file=${tokenFile}`], twoDevices),
  "that wants a header": () =>
    startService([
      "--http-restricted-api=shared-memory:admin-key=python-s3cret",
      "--grpc-restricted-protocol=shared-memory:admin-key=python-s3cret",
    ]),
  "with room for one region": () => startService(["--max-regions=1"], twoDevices),
};

describePython("the official Python clients", ["clients", "cuda-newest"], (pythons) => {
  const running = new Map<string, ServiceProcess>();
  let run: PytestEnd;
  beforeAll(async () => {
    const hash = createHash("sha256").update("ada-s3cret-token").digest("hex");
    writeFileSync(tokenFile, `ada: ${hash}\n`, { mode: 0o600 });
    for (const [name, start] of Object.entries(services)) running.set(name, await start());
    const addresses = [...running].map(([name, { httpUrl, grpcAddress }]) => [
      name,
      { http: new URL(httpUrl).host, grpc: grpcAddress },
    ]);
    run = await runPytest(pythons.clients, {
      ...twoDevices,
      TEST_SERVICES: JSON.stringify(Object.fromEntries(addresses)),
      TEST_ALLOCATE_COMMAND: JSON.stringify([process.execPath, main, "allocate", `--driver=${testDriver}`]),
      TEST_CLIENTS_PYTHON: pythons.clients,
      TEST_NEWEST_PYTHON: pythons["cuda-newest"],
    });
  }, timeoutMs);
  afterAll(async () => {
    rmSync(folder, { recursive: true });
    for (const service of running.values()) expect(await service.stop()).toEqual({ code: 0, signal: null });
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

  test("no client's fault is logged as a fault of the service", () => {
    const logged = [...running].filter(([name]) => name !== "whose every other close fails");
    const faults = logged.flatMap(([, { log }]) => log.filter(({ level }) => Number(level) >= 50));
    expect(faults).toEqual([]);
  });

  test("no log holds a handle or a password", () => {
    expect(JSON.stringify([...running.values()].map((service) => service.log))).toContain("region-0999");
    // What the Basic auth plugin sends.
    keepSecret("a password", Buffer.from("ada:s3cret:with a colon"));
    keepSecret("a token", Buffer.from("ada-s3cret-token"));
    keepSecret("a header's key", Buffer.from("python-s3cret"));
    expect(leaks()).toEqual([]);
  });
});
