import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ServiceProcess } from "../../src/cli/service-process.js";
import { startService, testDriver } from "../helpers/cudashm.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const readme = readFileSync(join(root, "README.md"), "utf8");
const shell = promisify(execFile);

let service: ServiceProcess;
let exporter: ChildProcess;
let folder: string;

beforeAll(async () => {
  service = await startService();
  // The commands leave region.json behind, so they run in a folder that has what they name.
  folder = mkdtempSync(join(tmpdir(), "cudashm-readme-"));
  for (const name of ["dist", "native", "node_modules", "proto"])
    symlinkSync(join(root, name), join(folder, name));
  cpSync(join(root, "package.json"), join(folder, "package.json"));
  exporter = spawn("bash", ["-c", block("exporter")], {
    cwd: folder,
    stdio: ["pipe", "pipe", "ignore"],
    env: { ...process.env, CUDASHM_DRIVER: testDriver },
  });
  const [line] = await once(exporter.stdout as Readable, "data");
  expect(JSON.parse(String(line))).toMatchObject({ device_id: 0, byte_size: 4096 });
});

afterAll(async () => {
  exporter.stdin?.end();
  await once(exporter, "close");
  rmSync(folder, { recursive: true });
  expect(await service.stop()).toEqual({ code: 0, signal: null });
});

/** A block of commands as the README has it, with the free ports that this service took. */
function block(name: string): string {
  const found = readme.match(new RegExp(`<!-- run: ${name} -->\\n\`\`\`sh\\n([^]*?)\`\`\``))?.[1];
  if (found === undefined) throw new Error(`the README has no block ${name}`);
  return found
    .replaceAll("127.0.0.1:8000", new URL(service.httpUrl).host)
    .replaceAll("127.0.0.1:8001", service.grpcAddress);
}

/** What the README says the commands print: the comments behind them. */
function promised(commands: string): string[] {
  return commands.split("\n").flatMap((line) => (line.startsWith("# ") ? [line.slice(2)] : []));
}

test("the curl session does what the README says", async () => {
  const commands = block("curl");
  const { stdout } = await shell("bash", ["-e", "-c", commands.replaceAll("curl ", "curl -fsS -w '\\n' ")], {
    cwd: folder,
  });
  expect(stdout.split("\n").filter((printed) => printed !== "")).toEqual(promised(commands));
});

test("the call of /v1 says when the memory may be freed, as the README says", async () => {
  const commands = block("lifecycle").replaceAll("curl ", "curl -fsS -w '\\n' ");
  const { stdout } = await shell("bash", ["-e", "-c", commands], { cwd: folder });
  const [registered, ...rest] = stdout.trim().split("\n");
  expect(JSON.parse(registered ?? "")).toMatchObject({ name: "input0", state: "ready", byte_size: 4096 });
  expect(rest).toEqual(promised(commands));
});

test("the gRPC call answers what the README says", async () => {
  const commands = block("grpc");
  const { stdout } = await shell("bash", ["-e", "-c", commands], { cwd: folder });
  expect(stdout.trim().split("\n")).toEqual(promised(commands));
});

test("the handle that the README's commands leave in region.json is kept out of commits", async () => {
  const { stdout } = await shell("git", ["check-ignore", "--no-index", "region.json"], { cwd: root });
  expect(stdout).toBe("region.json\n");
});
