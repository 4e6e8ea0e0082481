import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { startService } from "../helpers/cudashm.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

test("compiles for browsers, with no types of Node's", () => {
  const tsc = join(root, "node_modules/.bin/tsc");
  const { status, stdout } = spawnSync(tsc, ["-p", "test/client/dom"], { cwd: root, encoding: "utf8" });
  expect({ status, stdout }).toEqual({ status: 0, stdout: "" });
});

test("the built folder runs where nothing else of the package is", async () => {
  await using service = await startService();
  const folder = mkdtempSync(join(tmpdir(), "cudashm-client-"));
  try {
    cpSync(join(root, "dist/client"), folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), '{"type":"module"}');
    const program = `
      const { createCudaSharedMemoryClient } = await import(${JSON.stringify(pathToFileURL(join(folder, "index.js")).href)});
      const client = createCudaSharedMemoryClient({ baseUrl: ${JSON.stringify(service.httpUrl)} });
      console.log((await client.metadata()).name, await client.statuses());`;
    const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
      cwd: folder,
      encoding: "utf8",
    });
    expect({ stdout, stderr }).toEqual({ stdout: "cudashm []\n", stderr: "" });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
