import { expect, test } from "vitest";
import type { Exporter } from "../../src/core/exporter.js";
import { IpcMemHandle } from "../../src/core/handle.js";
import { registerProblem } from "../../src/core/register-checks.js";
import { request } from "../helpers/registry-harness.js";

const exporter: Exporter = {
  pid: 4711,
  startTime: 123n,
  bootId: "3d1ad3a4-6d5c-4c0e-9f0e-0f9f1d6f2a11",
  pidNamespace: 4026531836n,
};

const problem = (fields: Partial<Exporter>) =>
  registerProblem(
    request("r", new IpcMemHandle(new Uint8Array(64)), { exporter: { ...exporter, ...fields } }),
  )?.message;

test.each<[string, Partial<Exporter>, string]>([
  ["no pid", { pid: 0 }, "the exporter's pid must be from 1 to 4194304, got 0"],
  ["a pid that Linux does not have", { pid: 2 ** 22 + 1 }, "pid must be from 1 to 4194304, got 4194305"],
  ["half a pid", { pid: 1.5 }, "pid must be from 1 to 4194304, got 1.5"],
  ["no start time", { startTime: 0n }, "start_time is missing"],
  ["a start time of more than 64 bits", { startTime: 2n ** 64n }, "start_time is missing"],
  ["no boot id", { bootId: "" }, "boot_id is missing or none"],
  ["a boot id that is none", { bootId: "a\nb" }, "boot_id is missing or none"],
  ["an endless boot id", { bootId: "a".repeat(65) }, "boot_id is missing or none"],
  ["no namespace", { pidNamespace: 0n }, "pid_namespace is missing"],
])("an exporter with %s is refused before anyone looks for it", (_what, fields, text) => {
  expect(problem(fields)).toContain(text);
});

test("an exporter with all four facts is for the watch to judge", () => {
  expect(problem({})).toBeUndefined();
  expect(problem({ pid: 1, startTime: 1n, pidNamespace: 2n ** 64n - 1n })).toBeUndefined();
});
