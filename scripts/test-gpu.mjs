// `npm run test:gpu`: what the emulated driver cannot show, on NVIDIA's own: the driver contract suite, the
// end-to-end tests and the demo. Where there is no GPU it says why, and ends with 0.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { createCudaDriver } from "../dist/native/driver-selection.js";
import { root } from "./tree-hash.mjs";

const missing = await whyNoGpu();
if (missing !== null) {
  process.stdout.write(`skipped: no usable NVIDIA driver on this machine: ${missing}\n`);
  process.stdout.write("0 passed, 0 failed, 1 skipped\n");
} else {
  const env = { ...process.env, CUDASHM_TEST_DRIVER: "cuda" };
  const vitest = join(root, "node_modules", ".bin", "vitest");
  const tests = run(vitest, ["run", "test/contract", "test/e2e"], env);
  const demo = run(process.execPath, ["dist/main.js", "demo", "--driver=cuda"], env);
  process.exitCode = tests && demo ? 0 : 1;
}

/** null if there is a GPU that NVIDIA's driver can use. */
async function whyNoGpu() {
  const driver = createCudaDriver({ preference: "cuda", contextLingerMs: 0 });
  try {
    const devices = await driver.devices();
    for (const { ordinal, name, uuid, totalBytes } of devices) {
      process.stdout.write(`device ${ordinal}: ${name}, ${uuid}, ${totalBytes} bytes\n`);
    }
    return devices.length > 0 ? null : "the driver lists no device";
  } catch (error) {
    return error.message;
  }
}

function run(file, args, env) {
  return spawnSync(file, args, { cwd: root, stdio: "inherit", env }).status === 0;
}
