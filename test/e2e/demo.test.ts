import { expect, test } from "vitest";
import { runCommand, testDriver } from "../helpers/cudashm.js";

test("the demo's checks all hold, and it says each step", async () => {
  const { code, lines, errorText } = await runCommand(["demo", `--driver=${testDriver}`]);
  expect({ code, errorText }).toEqual({ code: 0, errorText: "" });
  expect(lines.filter((line) => /^\d\. /.test(line)).length).toBe(7);
  expect(lines.at(-1)).toMatch(/^All \d+ checks held\.$/);
});

test.skipIf(testDriver !== "emulated")("the demo fails where the driver refuses to share", async () => {
  const { code, lines } = await runCommand(["demo", "--driver=emulated"], {
    CUDASHM_EMULATED_FAULTS: "cuIpcOpenMemHandle_v2@2=1",
  });
  expect(code).toBe(1);
  expect(lines.join("\n")).toMatch(/FAILED cannot go on: .*CUDA_ERROR_INVALID_VALUE \(1\)/);
});

test("the demo says why it cannot start on a driver that is not there", async () => {
  const { code, lines } = await runCommand([
    "demo",
    "--driver=cuda",
    "--driver-library=/nonexistent/libcuda.so.1",
  ]);
  expect(code).toBe(1);
  expect(lines.join("\n")).toMatch(/FAILED cannot go on: .*\/nonexistent\/libcuda\.so\.1/);
});
