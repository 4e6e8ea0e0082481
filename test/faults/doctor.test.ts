import { afterAll, beforeAll, expect, test } from "vitest";
import type { ExporterProcess } from "../../src/cli/exporter-process.js";
import { type Diagnosis, diagnose } from "../../src/doctor/diagnosis.js";
import { thisHost } from "../../src/doctor/host.js";
import { selfTestBytes } from "../../src/doctor/ipc-self-test.js";
import { startExporter } from "../helpers/cudashm.js";
import { type DriverCall, FaultyDriver } from "./faulty-driver.js";

let exporter: ExporterProcess;

beforeAll(async () => {
  exporter = await startExporter([`--bytes=${selfTestBytes}`]);
});
afterAll(() => exporter[Symbol.asyncDispose]());

function diagnosisOn({ libraryPath }: FaultyDriver): Promise<Diagnosis> {
  return diagnose({
    host: thisHost({}),
    preference: "emulated",
    libraryPath,
    startExporter: async () => ({
      body: exporter.body,
      read: (offset, byteSize) => exporter.read(offset, byteSize),
      write: (offset, bytes) => exporter.write(offset, bytes),
      // It is there for the next one.
      [Symbol.asyncDispose]: async () => {},
    }),
    timeoutMs: 60_000,
    signal: new AbortController().signal,
  });
}

function failures({ findings }: Diagnosis): string[] {
  return findings.filter(({ status }) => status === "FAIL").map(({ check, text }) => `${check}: ${text}`);
}

async function callsOfDiagnosis(): Promise<readonly DriverCall[]> {
  using faulty = await FaultyDriver.start();
  faulty.newCalls();
  expect(failures(await diagnosisOn(faulty))).toEqual([]);
  return faulty.newCalls().each();
}

/** What the doctor can do without; of these only the first is for something like that. */
const optional = [
  "cuCtxPopCurrent_v2",
  "cuDevicePrimaryCtxRelease_v2",
  "cuMemGetInfo_v2",
  "cuDeviceGetAttribute",
];
const firstIsOptional = ["cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2"];

function isOptional({ name, k }: DriverCall): boolean {
  return optional.includes(name) || (k === 1 && firstIsOptional.includes(name));
}

test.each([
  [1, "CUDA_ERROR_INVALID_VALUE (1)"],
  [2, "CUDA_ERROR_OUT_OF_MEMORY (2)"],
  [700, "CUDA_ERROR_ILLEGAL_ADDRESS (700)"],
])("a driver that refuses any call of the doctor with %d is diagnosed", async (result, text) => {
  const problems: string[] = [];
  for (const call of await callsOfDiagnosis()) {
    const note = (problem: string) => problems.push(`${call.name}@${call.k}: ${problem}`);
    using faulty = await FaultyDriver.start();
    faulty.newCalls();
    faulty.refuse(call, result);
    const found = await diagnosisOn(faulty).catch((error: Error) => {
      note(`it fails: ${error.message}`);
      return null;
    });
    const calls = faulty.newCalls();
    if (calls.refused(call.name) === 0) note("not refused");
    if (found === null) continue;
    const failed = failures(found);
    const isTold = failed.some((each) => each.includes(text));
    if (!isTold && !(failed.length === 0 && isOptional(call))) note(`it says ${failed}`);
    if (found.stuck) note("stuck");
    if (result === 700) continue;
    const opens = calls.count("cuIpcOpenMemHandle_v2") - calls.count("cuIpcCloseMemHandle");
    const isUnclosed = failed.some((each) => each.includes("the opened memory could not be closed"));
    if (opens !== Number(isUnclosed)) note(`${opens} handles are left`);
  }
  expect(problems).toEqual([]);
});
