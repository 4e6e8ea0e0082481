import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ServiceProcess } from "../../src/cli/service-process.js";
import { startExporter, startService } from "../helpers/cudashm.js";
import { describePython } from "./python/environment.js";
import { runPython } from "./python/run-python.js";

const examples = fileURLToPath(new URL("../../examples/python", import.meta.url));
const timeoutMs = 60_000;

describePython("the Python examples", ["clients"], (pythons) => {
  let service: ServiceProcess;
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(async () => {
    expect(await service.stop()).toEqual({ code: 0, signal: null });
  });

  test("http_client.py registers memory of its own", { timeout: timeoutMs }, async () => {
    const { host } = new URL(service.httpUrl);
    expect(await runPython(pythons.clients, [join(examples, "http_client.py"), host])).toEqual({
      code: 0,
      output: [
        "registered: [{'name': 'python-http', 'device_id': 0, 'byte_size': 4096}]",
        "sum of what is in the memory: 523776.0",
        "regions left: []",
        "",
      ].join("\n"),
    });
  });

  test("grpc_client.py registers memory of another process", { timeout: timeoutMs }, async () => {
    await using exporter = await startExporter();
    const folder = mkdtempSync(join(tmpdir(), "cudashm-examples-"));
    const file = join(folder, "region.json");
    writeFileSync(file, `${exporter.bodyLine}\n`);
    try {
      const args = [join(examples, "grpc_client.py"), file, service.grpcAddress];
      expect(await runPython(pythons.clients, args)).toEqual({
        code: 0,
        output: [
          "registered: example/python gRPC, device 0, 4096 bytes",
          "refused: StatusCode.ALREADY_EXISTS: shared memory region 'example/python gRPC' already in manager",
          "regions left: 0",
          "",
        ].join("\n"),
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
