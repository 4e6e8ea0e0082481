import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { startService, testDriver } from "../helpers/cudashm.js";
import { describeClient } from "./needed-packages.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

describeClient("curl", "curl", () => {
  test("session.sh registers, is refused a second time, and leaves nothing", async () => {
    await using service = await startService();
    const { stdout } = await promisify(execFile)("examples/curl/session.sh", [service.httpUrl], {
      cwd: root,
      env: { ...process.env, CUDASHM_DRIVER: testDriver },
    });
    expect(stdout.trimEnd().split("\n")).toEqual([
      'registered: [{"name":"curl_example","device_id":0,"byte_size":4096}]',
      `{"error":"shared memory region 'curl_example' already in manager"}`,
      "all regions: []",
    ]);
  });
});
