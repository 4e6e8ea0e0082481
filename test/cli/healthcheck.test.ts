import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { runCommand } from "../../src/cli/commands.js";
import { askOverHttp } from "../../src/cli/healthcheck-http.js";
import { loadConfig } from "../../src/config.js";
import { createLog } from "../../src/log.js";
import { startService } from "../../src/service.js";
import { CertificateFolder, type Identity } from "../helpers/certificates.js";
import { commandIo } from "../helpers/command-io.js";

let certificates: CertificateFolder;
let root: Identity;
let server: Identity;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "cudashm-health-"));
  certificates = await CertificateFolder.create();
  root = await certificates.makeRoot("root");
  server = await certificates.make("server", root);
});

afterAll(async () => {
  await certificates[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

const free = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"];

/** A service on the emulated driver, ready; gives the flags that tell its ports. */
async function start(...args: string[]): Promise<readonly string[]> {
  const log = createLog("warn", { write: () => {} });
  const { config } = loadConfig(["--driver=emulated", ...free, ...args], {});
  const service = await startService(config, { log });
  onTestFinished(() => service.stop());
  const flags = [`--http-port=${service.http?.port ?? 1}`, `--grpc-port=${service.grpc?.port ?? 1}`];
  const alive = ["--live", ...flags, ...args];
  // The driver is looked for in the background; gRPC says only that it is not ready yet.
  if (!args.includes("--driver=cuda")) {
    while (/starting|says so/.test((await healthcheck([...flags, ...args])).stderr));
  } else expect((await healthcheck(alive)).code).toBe(0);
  return [...flags, ...args];
}

async function healthcheck(args: readonly string[], env: Record<string, string> = {}) {
  const { io, written } = commandIo(["healthcheck", ...args], env);
  const { code } = await runCommand(io);
  return { code, ...written() };
}

const tls = (face: "http" | "grpc") => [
  `--${face}-use-ssl`,
  `--${face}-server-cert=${server.certificate}`,
  `--${face}-server-key=${server.key}`,
];

const mutual = (face: "http" | "grpc") => [
  ...tls(face),
  `--${face}-use-ssl-mutual`,
  `--${face}-root-cert=${root.certificate}`,
];

const restricted = [
  "--http-restricted-api=health:Admin-Key=one",
  "--grpc-restricted-protocol=health:Admin=two",
];

test.each([
  ["over HTTP", () => [], /^ready: http:\/\/127\.0\.0\.1:\d+\n$/],
  ["listening on every address", () => ["--http-address=0.0.0.0"], /^ready: http:\/\/127\.0\.0\.1:\d+\n$/],
  ["over TLS", () => tls("http"), /^ready: https:\/\/127\.0\.0\.1:\d+\n$/],
  ["over mutual TLS", () => mutual("http"), /^ready: https:\/\/127\.0\.0\.1:\d+\n$/],
  [
    "on a socket alone",
    () => ["--http-tcp=false", `--http-socket=${folder}/alone.sock`],
    /^ready: unix:\/.+\/alone\.sock\n$/,
  ],
  [
    "on a socket beside mutual TLS",
    () => [`--http-socket=${folder}/beside.sock`, ...mutual("http")],
    /^ready: unix:\/.+\/beside\.sock\n$/,
  ],
  ["with health restricted", () => restricted, /^ready: http:/],
  ["over gRPC, HTTP being off", () => ["--allow-http=false"], /^ready: gRPC at 127\.0\.0\.1:\d+\n$/],
  ["over gRPC and TLS", () => ["--allow-http=false", ...tls("grpc")], /^ready: gRPC at 127/],
  ["over gRPC and mutual TLS", () => ["--allow-http=false", ...mutual("grpc")], /^ready: gRPC at 127/],
  [
    "over gRPC on a socket",
    () => ["--allow-http=false", "--grpc-tcp=false", `--grpc-socket=${folder}/grpc.sock`],
    /^ready: gRPC at unix:\/.+\/grpc\.sock\n$/,
  ],
  ["over gRPC with health restricted", () => ["--allow-http=false", ...restricted], /^ready: gRPC at 127/],
])("a service that is ready %s is told so, with code 0", async (_how, args, line) => {
  const flags = await start(...args());
  expect(await healthcheck(flags)).toEqual({ code: 0, stdout: expect.stringMatching(line), stderr: "" });
});

test("variables tell where the service is, as they told the service", async () => {
  const [httpPort = ""] = await start();
  const variables = { CUDASHM_HTTP_PORT: httpPort.split("=")[1] ?? "" };
  expect(await healthcheck([], variables)).toMatchObject({ code: 0, stderr: "" });
});

test.each([
  [
    "HTTP",
    [],
    /^not ready: http:\/\/127\.0\.0\.1:\d+ answers 400; CUDA driver: unavailable: .+ \/nowhere\/lib.+\n$/,
  ],
  ["gRPC", ["--allow-http=false"], /^not ready: gRPC at 127\.0\.0\.1:\d+ says so\n$/],
])("a service without a usable driver is alive and not ready over %s", async (_face, args, line) => {
  const flags = await start("--driver=cuda", "--driver-library=/nowhere/libcuda.so.1", ...args);
  expect(await healthcheck(["--live", ...flags])).toMatchObject({ code: 0, stderr: "" });
  expect(await healthcheck(flags)).toEqual({ code: 1, stdout: "", stderr: expect.stringMatching(line) });
});

test.each([
  ["HTTP", "http-port", [], /^not ready: cannot ask http:\/\/127\.0\.0\.1:\d+: connect ECONNREFUSED/],
  [
    "gRPC",
    "grpc-port",
    ["--allow-http=false"],
    /^not ready: cannot ask gRPC at 127\.0\.0\.1:\d+: 14 UNAVAILABLE/,
  ],
])("where nothing listens for %s the line says so, with code 1", async (_face, flag, args, line) => {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  listener.close();
  await once(listener, "close");
  const { code, stdout, stderr } = await healthcheck([`--${flag}=${port}`, ...args]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(line);
});

test.each([
  [
    "signed by another authority than the clients'",
    async () => server,
    async () => certificates.makeRoot("other"),
  ],
  ["for servers only", async () => certificates.make("server-only", root, "serverAuth"), async () => root],
])(
  "a certificate of the service %s, which it takes from no client, is named with what to do",
  async (_how, own, signers) => {
    const { certificate, key } = await own();
    const shown = [`--http-server-cert=${certificate}`, `--http-server-key=${key}`];
    const flags = ["--http-use-ssl-mutual", ...shown, `--http-root-cert=${(await signers()).certificate}`];
    const service = await startService(loadConfig(["--driver=emulated", ...free, ...flags], {}).config, {
      log: createLog("warn", { write: () => {} }),
    });
    onTestFinished(() => service.stop());
    const ports = [`--http-port=${service.http?.port ?? 1}`];
    const { code, stderr } = await healthcheck(["--live", ...ports, ...flags]);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /; the service's own certificate was shown: .+ or give the service a --http-socket\n$/,
    );
    const socket = `--http-socket=${folder}/none.sock`;
    expect((await healthcheck([socket, ...flags])).stderr).not.toContain("certificate");
  },
);

test("a certificate that cannot be read is told as a line", async () => {
  const { code, stderr } = await healthcheck([
    "--http-use-ssl-mutual",
    "--http-server-cert=/nowhere.crt",
    "--http-server-key=/nowhere.key",
    `--http-root-cert=${root.certificate}`,
  ]);
  expect(code).toBe(1);
  expect(stderr).toMatch(/^not ready: cannot ask https:\/\/127\.0\.0\.1:8000: ENOENT.+\n$/);
});

test("a service that says nothing is told as one", async () => {
  const silent = createServer((socket) => socket.on("error", () => {})).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const sockets: Socket[] = [];
  silent.on("connection", (socket) => sockets.push(socket));
  const { port } = silent.address() as AddressInfo;
  const { config } = loadConfig([`--http-port=${port}`], {});
  expect(await askOverHttp(config, "ready", AbortSignal.timeout(20))).toEqual({
    healthy: false,
    text: `not ready: cannot ask http://127.0.0.1:${port}: it gave no answer in time`,
  });
  for (const socket of sockets) socket.destroy();
  silent.close();
});

test("with both faces off there is nothing to ask", async () => {
  const { code, stderr } = await healthcheck(["--allow-http=false", "--allow-grpc=false"]);
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: "HTTP and gRPC are both switched off: there is nothing to ask\n",
  });
});

test("a wrong option is refused with code 2", async () => {
  const { code, stderr } = await healthcheck(["--http-prot=1"]);
  expect(code).toBe(2);
  expect(stderr).toContain("unknown option --http-prot; did you mean --http-port?");
});
