import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { type ContractRun, runSchemathesis } from "./contract/run-schemathesis.js";
import { describePython } from "./python/environment.js";

const given = fileURLToPath(new URL("../fixtures/openapi/cuda-shared-memory.yaml", import.meta.url));
// Hundreds of requests, each thought up and judged by Python, where many tests share few cores.
const timeoutMs = 180_000;

function expectHeld({ code, output, faults, openMappings, serviceEnd }: ContractRun): void {
  expect(output).toMatch(/^ *(\d+) generated, \1 passed$/m);
  expect(code, output).toBe(0);
  expect(faults).toEqual([]);
  expect(serviceEnd).toEqual({ code: 0, signal: null });
  expect(openMappings).toBe(0);
}

/** Each of these answers came, so the checks were not made on refusals alone. */
function expectAnswers({ tally }: ContractRun, answers: readonly string[]): void {
  expect(Object.keys(tally)).toEqual(expect.arrayContaining([...answers]));
}

describePython("the service, driven by schemathesis", ["schemathesis"], ({ schemathesis }) => {
  test.concurrent(
    "keeps the contract it was given",
    async () => {
      const checks = [
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_schema_conformance",
      ];
      const run = await runSchemathesis(schemathesis, {
        document: given,
        config: "given.toml",
        checks,
        maxExamples: 10,
      });
      expectHeld(run);
      expectAnswers(run, [
        "cudaSharedMemoryStatus 200",
        "cudaSharedMemoryStatus 200 with regions",
        "cudaSharedMemoryRegister 200",
        "cudaSharedMemoryRegister 400",
        "cudaSharedMemoryUnregister 200",
        "cudaSharedMemoryUnregisterAll 200",
      ]);
    },
    timeoutMs,
  );

  test.concurrent(
    "keeps every promise of the document that it serves",
    async () => {
      const run = await runSchemathesis(schemathesis, {
        document: "/openapi.json",
        config: "served.toml",
        checks: ["all"],
        // A region that is asked for is registered anew, so that there is one.
        excludedChecks: ["use_after_free"],
        maxExamples: 10,
      });
      expectHeld(run);
      expectAnswers(run, [
        "cudaSharedMemoryStatus 200 with regions",
        "cudaSharedMemoryRegionStatus 200 with regions",
        "cudaSharedMemoryRegionStatus 404",
        "cudaSharedMemoryRegister 200",
        "cudaSharedMemoryRegister 400",
        "cudaSharedMemoryUnregister 200",
        "cudaSharedMemoryUnregister 400",
        "cudaSharedMemoryUnregisterAll 200",
        "readRegionContents 200",
        "readRegionContents 400",
        "writeRegionContents 200",
        "writeRegionContents 400",
        "serverState 200",
        "listDevices 200",
        "listRegions 200",
        "listRegions 400",
        "registerRegion 200",
        "registerRegion 400",
        "getRegion 200",
        "getRegion 400",
        "renewRegion 200",
        "renewRegion 400",
        "releaseRegion 200",
        "releaseRegion 400",
        "checksumRegion 200",
        "checksumRegion 400",
        "systemSharedMemoryRegister 501",
        "serverReady 200",
      ]);
    },
    timeoutMs,
  );
});
