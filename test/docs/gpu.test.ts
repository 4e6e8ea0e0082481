import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { driverLibraryName, emulatedDriverFolder } from "../../src/native/emulated-driver.js";
import { startExporter } from "../helpers/cudashm.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const run = promisify(execFile);

test("the script of docs/gpu.md tells which device a pointer is of, wherever it was opened", async () => {
  const [, script] = readFileSync(join(root, "docs/gpu.md"), "utf8").match(/```python\n([\s\S]*?)```/) ?? [];
  const folder = mkdtempSync(join(tmpdir(), "cudashm-gpu-doc-"));
  try {
    const devices = { CUDASHM_EMULATED_DEVICE_COUNT: "2" };
    await using exporter = await startExporter(["--driver=emulated", "--device=1"], devices);
    writeFileSync(join(folder, "ordinal.py"), script ?? "");
    writeFileSync(join(folder, "r.json"), exporter.bodyLine);
    const library = join(emulatedDriverFolder(), driverLibraryName);
    for (const device of ["1", "0"]) {
      const { stdout } = await run("python3", ["ordinal.py", "r.json", device, library], {
        cwd: folder,
        env: { ...process.env, ...devices },
      });
      expect(stdout).toBe(`opened on ${device}, the pointer is of device 1\n`);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
