import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { ExporterProcess } from "../../src/cli/exporter-process.js";
import type { ServiceProcess } from "../../src/cli/service-process.js";
import { describeClient } from "../clients/needed-packages.js";
import { describePython } from "../clients/python/environment.js";
import { runPython } from "../clients/python/run-python.js";
import { startExporter, startService } from "../helpers/cudashm.js";
import { request } from "../helpers/http.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const document = readFileSync(join(root, "docs/clients.md"), "utf8");
const run = promisify(execFile);

let service: ServiceProcess;
let exporter: ExporterProcess;
let folder: string;
beforeAll(async () => {
  service = await startService();
  exporter = await startExporter();
  folder = mkdtempSync(join(tmpdir(), "cudashm-clients-"));
  writeFileSync(join(folder, "region.json"), exporter.bodyLine);
});
afterEach(() => request("POST", `${service.httpUrl}/v2/cudasharedmemory/unregister`));
afterAll(async () => {
  rmSync(folder, { recursive: true });
  expect(await exporter.end()).toBe(0);
  expect(await service.stop()).toEqual({ code: 0, signal: null });
});

/** A block of code under this heading, for the service of this test. */
function block(heading: string, index = 0): string {
  const [, below = ""] = document.split(`\n${heading}\n`);
  const [, code] = [...below.matchAll(/^```\w+\n(.*?)^```/gms)][index] ?? [];
  if (code === undefined) throw new Error(`docs/clients.md has no code under ${heading}`);
  return code
    .replaceAll("127.0.0.1:8000", new URL(service.httpUrl).host)
    .replaceAll("127.0.0.1:8001", service.grpcAddress);
}

/** Runs JavaScript beside the names that the document takes as given; standard error must stay empty. */
async function javaScript(heading: string, index = 0): Promise<string> {
  const given = "const { B64: b64, B64: rawHandle } = process.env;";
  const { stdout, stderr } = await run(
    process.execPath,
    ["--input-type=module", "-e", `${given}\n${block(heading, index)}`],
    { cwd: root, env: { ...process.env, B64: exporter.body.raw_handle.b64 } },
  );
  expect(stderr).toBe("");
  return stdout;
}

test("the typed client's lines register, print the region and unregister", async () => {
  expect(await javaScript("### Typed client")).toBe("{ name: 'input0', deviceId: 0, byteSize: 4096n }\n");
});

test("the typed client's further lines keep a lease, list the region and say that it is closed", async () => {
  expect(await javaScript("### Typed client", 1)).toBe("input1 ready true\n{ closed: true, pins: 0 }\n");
});

test("plain fetch's lines register, print the region and unregister", async () => {
  const printed = "[ { name: 'input0', device_id: 0, byte_size: 4096 } ]\n";
  expect(await javaScript("### Plain fetch")).toBe(printed);
});

test("grpc-js's lines register and print the region", async () => {
  const printed = "{ input0: { name: 'input0', device_id: '0', byte_size: '4096' } }\n";
  expect(await javaScript("### gRPC (grpc-js and proto-loader, as Triton's own sample)")).toBe(printed);
});

describeClient("curl's lines", "curl", () => {
  test("print what the document says, and leave nothing", async () => {
    const commands = block("## curl");
    const { stdout } = await run("bash", ["-ec", commands], { cwd: folder });
    expect(stdout).toBe(commands.match(/(?<=^# ).*/m)?.[0]);
    const left = await request("GET", `${service.httpUrl}/v2/cudasharedmemory/status`);
    expect(left).toEqual({ status: 200, text: "[]" });
  });
});

describePython("Python's lines", ["clients"], ({ clients }) => {
  test("print the region over HTTP", async () => {
    expect(await runPython(clients, ["-c", block("## Python")])).toEqual({
      code: 0,
      output: "[{'name': 'input0', 'device_id': 0, 'byte_size': 4096}]\n",
    });
  });

  test("print the region over gRPC, with the module and the address changed", async () => {
    const overGrpc = block("## Python")
      .replaceAll("tritonclient.http", "tritonclient.grpc")
      .replace(new URL(service.httpUrl).host, service.grpcAddress);
    const { code, output } = await runPython(clients, ["-c", overGrpc]);
    expect(code, output).toBe(0);
    expect(output).toMatch(/^regions \{\n {2}key: "input0"\n.*byte_size: 4096\n/s);
  });
});
