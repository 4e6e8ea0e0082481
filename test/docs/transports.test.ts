import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LineProcess } from "../../src/cli/line-process.js";
import { describePython } from "../clients/python/environment.js";
import { startCommand, testDriver } from "../helpers/cudashm.js";

const document = readFileSync(fileURLToPath(new URL("../../docs/transports.md", import.meta.url)), "utf8");
const run = promisify(execFile);

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "cudashm-transports-"));
});

afterAll(() => rmSync(folder, { recursive: true }));

/** A block of the document, for sockets and files of this test's own folder. */
function block(name: string): string {
  const found = document.match(new RegExp(`<!-- run: ${name} -->\\n\`\`\`\\w+\\n([^]*?)\`\`\``))?.[1];
  if (found === undefined) throw new Error(`docs/transports.md has no block ${name}`);
  return found.replaceAll("/run/cudashm", folder);
}

/** The service as the document starts it, on free ports. */
async function start(name: string) {
  const words = block(name).replaceAll("\\\n", " ").split(/\s+/);
  const args = words.slice(words.indexOf("serve"), -1);
  const files = args.map((arg) => (/\.(crt|key)$/.test(arg) ? join(folder, arg) : arg));
  const free = ["--http-port=0", "--grpc-port=0", "--allow-metrics=false", `--driver=${testDriver}`];
  const service = startCommand([...files, ...free]);
  const http = await startedAt(service, "HTTPService");
  return { service, ...http };
}

async function startedAt(
  service: LineProcess,
  last: string,
): Promise<{ httpPort: string; grpcPort: string }> {
  const ports = new Map<string, string>();
  while (!ports.has(last)) {
    const [, title, port] =
      /^Started (\w+) at .*?(\d*)$/.exec(JSON.parse(await service.nextLine()).msg) ?? [];
    if (title !== undefined) ports.set(title, port ?? "");
  }
  return { httpPort: ports.get("HTTPService") ?? "", grpcPort: ports.get("GRPCInferenceService") ?? "" };
}

/** What the document says its commands print: the comments behind them. */
const promised = (commands: string) => commands.match(/(?<=^# ).*/gm)?.join("\n");

async function shell(commands: string): Promise<string> {
  return (await run("bash", ["-ec", commands], { cwd: folder })).stdout;
}

test("curl over the Unix socket prints what the document says", async () => {
  const { service } = await start("socket-service");
  await using _service = service;
  expect(await shell(block("socket-clients"))).toBe(promised(block("socket-clients")));
  expect(await service.kill("SIGTERM")).toEqual({ code: 0, signal: null });
});

describe("with certificates made as the document says", () => {
  let service: LineProcess;
  let ports: { httpPort: string; grpcPort: string };

  beforeAll(async () => {
    await shell(block("certificates"));
    const started = await start("tls-service");
    service = started.service;
    ports = started;
  });

  afterAll(async () => expect(await service.kill("SIGTERM")).toEqual({ code: 0, signal: null }));

  const withPorts = (text: string) =>
    text
      .replaceAll("localhost:8000", `localhost:${ports.httpPort}`)
      .replaceAll("localhost:8001", `localhost:${ports.grpcPort}`);

  test("curl prints what the document says, and is let in with its certificate only", async () => {
    const commands = withPorts(block("tls-clients"));
    expect(await shell(commands)).toBe(promised(commands));
    await expect(shell(commands.replace("--cert client.crt --key client.key", ""))).rejects.toThrow(
      "curl: (",
    );
  });

  describePython("Triton's Python clients", ["clients"], ({ clients }) => {
    test("get through over TLS, gRPC and HTTP", async () => {
      const { stdout } = await run(clients, ["-c", withPorts(block("tls-python"))], { cwd: folder });
      expect(stdout).toBe("True\nTrue\n");
    });

    test("get through over the Unix socket", async () => {
      const { service } = await start("socket-service");
      await using _service = service;
      const script = `import tritonclient.grpc as t; print(t.InferenceServerClient("unix:${folder}/grpc.sock").is_server_live())`;
      expect((await run(clients, ["-c", script])).stdout).toBe("True\n");
    });
  });
});
