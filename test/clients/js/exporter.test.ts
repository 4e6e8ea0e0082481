import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { startService } from "../../helpers/cudashm.js";

const exporter = fileURLToPath(new URL("../../../examples/js/exporter.mjs", import.meta.url));
const run = promisify(execFile);

test("exporter.mjs shares memory with the service both ways, and leaves nothing", async () => {
  await using service = await startService(["--allow-contents"]);
  const { stdout } = await run(process.execPath, [exporter, service.httpUrl]);
  expect(stdout.trimEnd().split("\n")).toEqual([
    expect.stringMatching(/^registered exporter-\d+: 4096 bytes on device 0$/),
    'the service reads: "written by the exporter."',
    'the exporter reads: "written by the service!!"',
    "unregistered and freed; regions left: 0",
  ]);
});

test("exporter.mjs fails where it may not compare bytes, and still unregisters", async () => {
  await using service = await startService();
  const failed = await run(process.execPath, [exporter, service.httpUrl]).catch((error) => error);
  expect(failed.code).toBe(1);
  expect(failed.stderr).toContain("--allow-contents");
  const status = await fetch(`${service.httpUrl}/v2/cudasharedmemory/status`);
  expect(await status.json()).toEqual([]);
});
