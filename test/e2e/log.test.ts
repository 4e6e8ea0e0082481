import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test, vi } from "vitest";
import { runCommand, startCommand, startExporter, startService } from "../helpers/cudashm.js";
import { region } from "../helpers/http.js";
import { inferenceClient } from "../helpers/inference-client.js";

const main = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
const options = ["serve", "--driver=emulated", "--http-port=0", "--grpc-port=0", "--metrics-port=0"];

/** Runs the service until its log shows that it is up, then stops it; everything it wrote. */
async function untilStarted(file: string, args: readonly string[]): Promise<string> {
  const child = spawn(file, args, { stdio: ["ignore", "pipe", "ignore"] });
  const closed = once(child, "close");
  let output = "";
  for await (const piece of child.stdout.setEncoding("utf8")) {
    output += piece;
    if (output.includes("Started HTTPService") && !child.killed) child.kill();
  }
  await closed;
  return output;
}

test("on a terminal the log is for people, in colour", async () => {
  const command = ["exec", process.execPath, main, ...options].join(" ");
  const output = await untilStarted("script", ["--quiet", "--return", "--command", command, "/dev/null"]);
  expect(output).toMatch(/^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}\] .*INFO.*: .*Started HTTPService at/m);
  expect(output).toContain("\u001b[");
  expect(output).not.toContain('{"level"');
});

test("through a pipe it is JSON, and for people without colour if asked", async () => {
  const json = await untilStarted(process.execPath, [main, ...options]);
  for (const line of json.trim().split("\n")) expect(JSON.parse(line)).toHaveProperty("msg");
  const pretty = await untilStarted(process.execPath, [main, ...options, "--log-format=pretty"]);
  expect(pretty).toMatch(/^\[[\d :.-]+\] INFO: Started HTTPService at/m);
  expect(pretty).not.toContain("\u001b[");
});

test("a log file is appended to, for the group to read at most, and standard output stays empty", async () => {
  const folder = mkdtempSync(join(tmpdir(), "cudashm-log-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "log");
  const kept = '{"msg":"kept"}\n';
  writeFileSync(path, kept);
  const fresh = join(folder, "fresh");
  for (const file of [path, fresh]) {
    const command = startCommand([...options, `--log-file=${file}`]);
    const isUp = () => existsSync(file) && readFileSync(file, "utf8").includes("Started HTTPService");
    await vi.waitUntil(isUp, { timeout: 15_000, interval: 20 });
    expect(await command.kill()).toEqual({ code: 0, signal: null });
    for await (const line of command.lines()) expect.fail(`standard output has ${line}`);
  }
  const text = readFileSync(path, "utf8");
  expect(text.startsWith(kept)).toBe(true);
  expect(JSON.parse(text.trim().split("\n").at(-1) ?? "")).toMatchObject({ msg: "stopped" });
  expect(statSync(fresh).mode & 0o007).toBe(0);
});

test("a log file that cannot be opened is a wrong option", async () => {
  const { code, errorText } = await runCommand([...options, "--log-file=/nonexistent/log"]);
  expect(code).toBe(2);
  expect(errorText).toContain("--log-file: the file cannot be opened for writing: ENOENT");
});

test("the id that a client gives its request comes back and is on every line about it, over both faces", async () => {
  await using service = await startService(["--log-verbose=1"]);
  await using exporter = await startExporter();
  const http = await fetch(service.httpUrl + region("over-http", "register"), {
    method: "POST",
    body: exporter.bodyLine,
    headers: { "x-request-id": "given-1" },
  });
  expect([http.status, http.headers.get("x-request-id")]).toEqual([200, "given-1"]);
  const refused = await fetch(service.httpUrl + region("over-http", "register"), {
    method: "POST",
    body: exporter.bodyLine,
    headers: { "x-request-id": "not one" },
  });
  const own = refused.headers.get("x-request-id");
  expect([refused.status, own]).toEqual([400, expect.stringMatching(/^[\w-]{8,24}$/)]);
  using grpc = inferenceClient(service.grpcAddress);
  const raw_handle = Buffer.from(exporter.body.raw_handle.b64, "base64");
  const request = { name: "over-grpc", raw_handle, byte_size: 64 };
  await grpc.call("CudaSharedMemoryRegister", request, undefined, { "x-request-id": "given-2" });
  await service.stop();
  const about = (id: string | null) =>
    service.log.filter(({ requestId }) => requestId === id).map(({ msg, code }) => [msg, code]);
  expect(about("given-1")).toEqual([
    ["region registered", undefined],
    ["request answered", "OK"],
  ]);
  expect(about(own)).toEqual([["request answered", "ALREADY_EXISTS"]]);
  expect(about("given-2")).toEqual([
    ["region registered", undefined],
    ["request answered", "OK"],
  ]);
});
