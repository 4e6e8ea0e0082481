import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const script = fileURLToPath(new URL("../../scripts/test-gpu.mjs", import.meta.url));

test("test:gpu says that there is no GPU, counts a skip and ends with code 0", () => {
  const { status, stdout } = spawnSync(process.execPath, [script], {
    encoding: "utf8",
    // Hides every GPU there may be.
    env: { ...process.env, CUDA_VISIBLE_DEVICES: "" },
  });
  expect(status).toBe(0);
  const [why, tally] = stdout.trimEnd().split("\n").slice(-2);
  expect(why).toMatch(/^skipped: no usable NVIDIA driver on this machine: .+/);
  expect(tally).toBe("0 passed, 0 failed, 1 skipped");
});
