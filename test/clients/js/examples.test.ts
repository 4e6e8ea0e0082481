import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ExporterProcess } from "../../../src/cli/exporter-process.js";
import type { ServiceProcess } from "../../../src/cli/service-process.js";
import { startExporter, startService } from "../../helpers/cudashm.js";

const examples = fileURLToPath(new URL("../../../examples/js", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "cudashm-examples-"));
const regionFile = join(folder, "region.json");

let service: ServiceProcess;
let exporter: ExporterProcess;
beforeAll(async () => {
  service = await startService();
  exporter = await startExporter();
  writeFileSync(regionFile, `${exporter.bodyLine}\n`);
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  expect(await exporter.end()).toBe(0);
  expect(await service.stop()).toEqual({ code: 0, signal: null });
});

/** Runs an example to its end, as its first comment says. */
async function runExample(name: string, ...args: string[]) {
  const child = spawn(process.execPath, [join(examples, name), ...args]);
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close"),
  ]);
  return { code, stderr, lines: stdout.trimEnd().split("\n") };
}

test("typed-client.mjs registers, is refused a second time, and leaves nothing", async () => {
  expect(await runExample("typed-client.mjs", regionFile, service.httpUrl)).toEqual({
    code: 0,
    stderr: "",
    lines: [
      "registered 'example/typed client': 4096 bytes on device 0",
      "refused: ALREADY_EXISTS: shared memory region 'example/typed client' already in manager",
      "regions left: 0",
    ],
  });
});

test("plain-fetch.mjs registers and leaves nothing", async () => {
  expect(await runExample("plain-fetch.mjs", regionFile, service.httpUrl)).toEqual({
    code: 0,
    stderr: "",
    lines: [
      'registered: [{"name":"example/plain fetch","device_id":0,"byte_size":4096}]',
      "regions left: []",
    ],
  });
});

test("grpc-client.mjs registers, is refused a second time, and leaves nothing", async () => {
  expect(await runExample("grpc-client.mjs", regionFile, service.grpcAddress)).toEqual({
    code: 0,
    stderr: "",
    lines: [
      "registered 'example/grpc': 4096 bytes on device 0",
      "refused: ALREADY_EXISTS: shared memory region 'example/grpc' already in manager",
      "regions left: 0",
    ],
  });
});

test("watched-exporter.mjs sees its exporter die, and leaves nothing", async () => {
  expect(await runExample("watched-exporter.mjs", service.httpUrl)).toEqual({
    code: 0,
    stderr: "",
    lines: [
      "registered 4096 bytes for 30 s at a time",
      "registered: requested",
      "orphaned: exporter_exited",
      "the memory is closed: true",
      "unregistered: requested",
    ],
  });
  expect(await (await fetch(`${service.httpUrl}/v2/cudasharedmemory/status`)).json()).toEqual([]);
});
