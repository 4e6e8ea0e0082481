import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { allocate } from "../../src/cli/allocate.js";
import type { ExporterProcess } from "../../src/cli/exporter-process.js";
import type { ServiceProcess } from "../../src/cli/service-process.js";
import { type CudaSharedMemoryClient, createCudaSharedMemoryClient } from "../../src/client/index.js";
import { serveOptions } from "../../src/config.js";
import { describeClient } from "../clients/needed-packages.js";
import { startExporter, startService } from "../helpers/cudashm.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const document = readFileSync(join(root, "docs/lifecycle.md"), "utf8");
const readme = readFileSync(join(root, "README.md"), "utf8");
const run = promisify(execFile);

let exporter: ExporterProcess;
let folder: string;
let service: ServiceProcess;
let client: CudaSharedMemoryClient;
beforeAll(async () => {
  exporter = await startExporter();
  folder = mkdtempSync(join(tmpdir(), "cudashm-lifecycle-"));
  writeFileSync(join(folder, "region.json"), `${exporter.bodyLine}\n`);
});
beforeEach(async () => {
  service = await startService();
  client = createCudaSharedMemoryClient({ baseUrl: service.httpUrl });
});
afterEach(async () => {
  expect(await service.stop()).toEqual({ code: 0, signal: null });
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  expect(await exporter.end()).toBe(0);
});

/** A block of the document, for the service of this test. */
function block(name: string, text = document): string {
  const found = text.match(new RegExp(`<!-- run: ${name} -->\\n\`\`\`\\w+\\n([^]*?)\`\`\``))?.[1];
  if (found === undefined) throw new Error(`there is no block ${name}`);
  return found
    .replaceAll("127.0.0.1:8000", new URL(service.httpUrl).host)
    .replaceAll("127.0.0.1:8001", service.grpcAddress);
}

/** What the document says that the block prints, line by line; three dots stand for anything. */
function promised(name: string): RegExp[] {
  return (block(name).match(/^#.*$/gm) ?? []).map((line) => {
    const texts = line
      .replace(/^# ?/, "")
      .split("...")
      .map((text) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
    return new RegExp(`^${texts.join(".*")}$`);
  });
}

const registers = (name: string) =>
  client.registerRegion(name, {
    rawHandle: exporter.body.raw_handle.b64,
    deviceId: 0,
    byteSize: 4096,
    leaseMs: 60_000,
  });

/** Runs JavaScript beside the names that the document takes as given; standard error must stay empty. */
async function javaScript(name: string): Promise<string[]> {
  const program = `const { B64: rawHandle } = process.env;\n${block(name)}`;
  const env = { ...process.env, B64: exporter.body.raw_handle.b64 };
  const { stdout, stderr } = await run(process.execPath, ["--input-type=module", "-e", program], {
    cwd: root,
    env,
  });
  expect(stderr).toBe("");
  return stdout.trimEnd().split("\n");
}

describeClient("curl's lines", "curl", () => {
  const shell = async (name: string) => {
    const commands = block(name).replaceAll("curl ", "curl -fsS -w '\\n' ");
    const env = { ...process.env, pid: String(exporter.pid) };
    const { stdout } = await run("bash", ["-ec", commands], { cwd: folder, env });
    const printed = stdout.trimEnd().split("\n");
    const lines = promised(name);
    expect(printed).toHaveLength(lines.length);
    for (const [index, line] of lines.entries()) expect(printed[index]).toMatch(line);
  };

  test("register a region with a lease and a label, and find it by that", async () => {
    await shell("register");
    expect(await client.region("input0")).toMatchObject({ leaseMs: 60_000, labels: { model: "resnet" } });
  });

  test("unregister it, and say that the memory is closed", async () => {
    await registers("input0");
    await shell("unregister");
    expect(await client.statuses()).toEqual([]);
  });

  test("renew its lease", async () => {
    await registers("input0");
    await shell("renew");
  });

  test("name the exporter, which is then watched", async () => {
    await shell("exporter");
    expect(await client.region("input1")).toMatchObject({ exporter: { pid: exporter.pid } });
  });

  test("show the first events", async () => {
    await registers("input0");
    const curl = spawn("bash", ["-c", `exec ${block("events")}`], { stdio: ["ignore", "pipe", "ignore"] });
    const ended = once(curl, "close");
    const lines = createInterface({ input: curl.stdout })[Symbol.asyncIterator]();
    for (const line of promised("events")) expect((await lines.next()).value).toMatch(line);
    curl.kill();
    await ended;
  });

  test("of the README register and unregister", async () => {
    const commands = block("lifecycle", readme).replaceAll("curl ", "curl -fsS -w '\\n' ");
    const { stdout } = await run("bash", ["-ec", commands], { cwd: folder });
    const [registered = "", unregistered] = stdout.trimEnd().split("\n");
    expect(JSON.parse(registered)).toMatchObject({ name: "input0", state: "ready" });
    expect(`# ${unregistered}`).toBe(commands.match(/^# .*$/m)?.[0]);
  });

  test("say which run of the service answers", () => shell("server"));
});

test("the session's lines register a region that goes with them", async () => {
  const events = client.events({ region: "input2" });
  await events.next();
  expect(await javaScript("session")).toEqual(["true ready"]);
  expect((await events.next()).value).toMatchObject({ kind: "registered" });
  expect((await events.next()).value).toMatchObject({ kind: "unregistered", reason: "session_ended" });
  await events.return(undefined as never);
});

test("the watch's lines print each change, and where to go on", async () => {
  await registers("input0");
  const { instanceId } = await client.server();
  expect(await javaScript("watch")).toEqual([
    "1n registered requested input0",
    `DEADLINE_EXCEEDED after ${instanceId}/1`,
  ]);
});

test("the service as the document starts it takes up, killed, what is registered with its exporter", async () => {
  const args = block("serve").trim().split(" ").slice(3);
  expect(args[0]).toBe("--state-file");
  const start = () => startService(["--state-file", join(folder, String(args[1]))]);
  await using known = await startExporter(["--exporter"]);
  await using first = await start();
  const put = await fetch(`${first.httpUrl}/v1/regions/input0`, { method: "PUT", body: known.bodyLine });
  const { generation } = (await put.json()) as { generation: number };
  await first.stop("SIGKILL");
  await using second = await start();
  const again = createCudaSharedMemoryClient({ baseUrl: second.httpUrl });
  const region = await again.waitFor("input0", { waitMs: 10_000 });
  expect(region).toMatchObject({ generation: BigInt(generation), reason: "adopted", isVerified: true });
  expect(await again.server()).toMatchObject({ epoch: 2n });
  expect(await second.stop()).toEqual({ code: 0, signal: null });
});

test("every flag that the document names is one of the service's", () => {
  const flags = new Set(Object.values(serveOptions).map(({ flag }) => `--${flag}`));
  for (const flag of allocate.help().match(/--[a-z][a-z-]+/g) ?? []) flags.add(flag);
  const named = new Set(document.match(/--[a-z][a-z-]+/g));
  expect([...named].filter((flag) => !flags.has(flag))).toEqual([]);
  expect(named.size).toBeGreaterThan(7);
});
