import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type ChannelCredentials, credentials } from "@grpc/grpc-js";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { loadConfig } from "../../src/config.js";
import { ListenError } from "../../src/listen-error.js";
import { createLog } from "../../src/log.js";
import { type Service, startService } from "../../src/service.js";
import { CertificateFolder, type Identity } from "../helpers/certificates.js";
import { inferenceClient } from "../helpers/inference-client.js";

const run = promisify(execFile);

let certificates: CertificateFolder;
let root: Identity;
let server: Identity;
let client: Identity;
let stranger: Identity;
let folder: string;

beforeAll(async () => {
  certificates = await CertificateFolder.create();
  root = await certificates.makeRoot("root");
  server = await certificates.make("server", root);
  client = await certificates.make("client", root);
  stranger = await certificates.make("stranger", await certificates.makeRoot("other-root"));
});

afterAll(() => certificates[Symbol.asyncDispose]());

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "cudashm-service-"));
  return () => rm(folder, { recursive: true });
});

const free = ["--driver=emulated", "--http-port=0", "--grpc-port=0", "--metrics-port=0"];

interface Started {
  readonly service: Service;
  readonly messages: readonly string[];
}

async function start(...args: string[]): Promise<Started> {
  const messages: string[] = [];
  const log = createLog("info", { write: (line) => void messages.push(JSON.parse(line).msg) });
  const service = await startService(loadConfig([...free, ...args], {}).config, { log });
  onTestFinished(() => service.stop());
  return { service, messages };
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

/** What curl prints; rejects if it does not come to an answer of 2xx. */
async function curl(...args: string[]): Promise<string> {
  return (await run("curl", ["-fsS", "--max-time", "10", ...args])).stdout;
}

async function askGrpc(target: string, how?: ChannelCredentials) {
  using grpc = inferenceClient(target, how);
  return await grpc.call("ServerLive", {}, 10_000);
}

const id = "cudashm";
const started = ({ messages }: Started) => messages.filter((message) => message.startsWith("Started"));

test("a Unix socket serves beside the port, and is announced after it", async () => {
  const [http, grpc] = [join(folder, "http.sock"), join(folder, "grpc.sock")];
  const starting = await start(`--http-socket=${http}`, `--grpc-socket=${grpc}`, "--allow-metrics=false");
  const { service } = starting;
  expect(started(starting)).toEqual([
    `Started GRPCInferenceService at 127.0.0.1:${service.grpc?.port}`,
    `Started GRPCInferenceService at unix:${grpc}`,
    `Started HTTPService at 127.0.0.1:${service.http?.port}`,
    `Started HTTPService at unix:${http}`,
  ]);
  for (const where of [
    [`http://127.0.0.1:${service.http?.port}/v2`],
    ["--unix-socket", http, "http://localhost/v2"],
  ])
    expect(JSON.parse(await curl(...where))).toMatchObject({ name: id });
  for (const target of [`127.0.0.1:${service.grpc?.port}`, `unix:${grpc}`, `unix://${grpc}`])
    expect(await askGrpc(target)).toEqual({ live: true });
  expect((await stat(http)).mode & 0o777).toBe(0o600);
  expect((await stat(grpc)).mode & 0o777).toBe(0o600);
  await service.stop();
  expect(await readdir(folder)).toEqual([]);
});

test("with the ports off only the sockets serve, with the mode and group they are to have", async () => {
  const sockets = [`--http-socket=${join(folder, "h")}`, `--grpc-socket=${join(folder, "g")}`];
  const gid = process.getuid?.() === 0 ? 12345 : (process.getgroups?.().at(-1) ?? 0);
  const starting = await start(
    ...sockets,
    "--http-tcp=false",
    "--grpc-tcp=false",
    "--allow-metrics=false",
    `--socket-group=${gid}`,
  );
  const { service } = starting;
  expect([service.http, service.grpc]).toEqual([null, null]);
  expect(started(starting)).toEqual([
    `Started GRPCInferenceService at unix:${join(folder, "g")}`,
    `Started HTTPService at unix:${join(folder, "h")}`,
  ]);
  expect(await askGrpc(`unix:${join(folder, "g")}`)).toEqual({ live: true });
  await curl("--unix-socket", join(folder, "h"), "http://localhost/v2/health/live");
  for (const name of ["h", "g"]) {
    const { mode, gid: group } = await stat(join(folder, name));
    expect([mode & 0o777, group]).toEqual([0o660, gid]);
  }
});

test.each(["http", "grpc"] as const)(
  "where the socket of %s is not to be had, the error says why and nothing is left listening",
  async (face) => {
    const other = face === "http" ? "grpc" : "http";
    await writeFile(join(folder, "taken"), "");
    const [taken, free] = [join(folder, "taken"), join(folder, "free")];
    const starting = start(`--${face}-socket=${taken}`, `--${other}-socket=${free}`);
    await expect(starting).rejects.toThrow(ListenError);
    await expect(starting).rejects.toThrow(
      `cannot listen on unix:${taken} for ${face}: there is something that is no socket; remove it or choose another path`,
    );
    expect(await readdir(folder)).toEqual(["taken"]);
  },
);

test("where the port is not to be had, its face's socket goes too", async () => {
  const busy = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void busy.close());
  await once(busy, "listening");
  const { port } = busy.address() as { port: number };
  await expect(start(`--http-socket=${join(folder, "h")}`, `--http-port=${port}`)).rejects.toThrow(
    `cannot listen on 127.0.0.1:${port} for http: the port is in use`,
  );
  expect(await readdir(folder)).toEqual([]);
});

test("a second service does not take over the sockets of the first", async () => {
  const socket = `--http-socket=${join(folder, "h")}`;
  await start(socket);
  await expect(start(socket)).rejects.toThrow("another process listens there");
  await curl("--unix-socket", join(folder, "h"), "http://localhost/v2/health/live");
});

test("HTTPS answers curl that has the root, and no other", async () => {
  const { service } = await start(...tls("http"));
  const url = `https://localhost:${service.http?.port}/v2`;
  expect(JSON.parse(await curl("--cacert", root.certificate, url))).toMatchObject({ name: id });
  // 60: the peer's certificate cannot be authenticated.
  await expect(curl("--cacert", stranger.certificate, url)).rejects.toMatchObject({ code: 60 });
  await expect(curl(url.replace("https", "http"))).rejects.toThrow();
});

test("HTTPS wants a client's certificate where it is told to", async () => {
  const { service } = await start(...mutual("http"));
  const ask = (...how: string[]) =>
    curl("--cacert", root.certificate, ...how, `https://127.0.0.1:${service.http?.port}/v2`);
  const with_ = ({ certificate, key }: Identity) => ["--cert", certificate, "--key", key];
  expect(JSON.parse(await ask(...with_(client)))).toMatchObject({ name: id });
  await expect(ask()).rejects.toThrow();
  await expect(ask(...with_(stranger))).rejects.toThrow();
});

test("gRPC over TLS answers a client that has the root, and no other", async () => {
  const { service } = await start(...tls("grpc"));
  const target = `localhost:${service.grpc?.port}`;
  const trust = async ({ certificate }: Identity) => credentials.createSsl(await readFile(certificate));
  expect(await askGrpc(target, await trust(root))).toEqual({ live: true });
  await expect(askGrpc(target, await trust(stranger))).rejects.toMatchObject({ code: 14 });
  await expect(askGrpc(target)).rejects.toMatchObject({ code: 14 });
});

test("gRPC over TLS wants a client's certificate where it is told to", async () => {
  const { service } = await start(...mutual("grpc"));
  const ask = async (identity?: Identity) => {
    const files = [root.certificate, ...(identity ? [identity.key, identity.certificate] : [])];
    const [ca, key, cert] = await Promise.all(files.map((file) => readFile(file)));
    return askGrpc(
      `localhost:${service.grpc?.port}`,
      credentials.createSsl(ca ?? null, key ?? null, cert ?? null),
    );
  };
  expect(await ask(client)).toEqual({ live: true });
  await expect(ask()).rejects.toMatchObject({ code: 14 });
  await expect(ask(stranger)).rejects.toMatchObject({ code: 14 });
});

test("a Unix socket is plain where the port has TLS", async () => {
  const sockets = [`--http-socket=${join(folder, "h")}`, `--grpc-socket=${join(folder, "g")}`];
  await start(...mutual("http"), ...mutual("grpc"), ...sockets);
  await curl("--unix-socket", join(folder, "h"), "http://localhost/v2/health/live");
  expect(await askGrpc(`unix:${join(folder, "g")}`)).toEqual({ live: true });
});
