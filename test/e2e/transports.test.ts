import { once } from "node:events";
import { mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises";
import { type Agent, get, Agent as HttpsAgent } from "node:https";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { LineProcess } from "../../src/cli/line-process.js";
import { CertificateFolder, type Identity } from "../helpers/certificates.js";
import { runCommand, startCommand, testDriver } from "../helpers/cudashm.js";

let certificates: CertificateFolder;
let root: Identity;
let server: Identity;
let renewed: Identity;
let ca: Buffer;
let folder: string;

beforeAll(async () => {
  certificates = await CertificateFolder.create();
  root = await certificates.makeRoot("root");
  server = await certificates.make("server", root);
  renewed = await certificates.make("renewed", root);
  ca = await certificates.read(root);
});

afterAll(() => certificates[Symbol.asyncDispose]());

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "cudashm-e2e-"));
  return () => rm(folder, { recursive: true });
});

const free = ["--http-port=0", "--grpc-port=0", "--allow-metrics=false", `--driver=${testDriver}`];

const tls = (face: "http" | "grpc", { certificate, key }: Identity) => [
  `--${face}-use-ssl`,
  `--${face}-server-cert=${certificate}`,
  `--${face}-server-key=${key}`,
];

/** The next log line with such a text; what comes before it is skipped. */
async function logged(service: LineProcess, text: RegExp): Promise<{ msg: string; level: number }> {
  for (;;) {
    const line = JSON.parse(await service.nextLine());
    if (text.test(line.msg)) return line;
  }
}

async function portIn(service: LineProcess, title: string): Promise<number> {
  const { msg } = await logged(service, new RegExp(`^Started ${title} at 127`));
  return Number(msg.slice(msg.lastIndexOf(":") + 1));
}

async function handshake(port: number): Promise<TLSSocket> {
  const socket = connectTls({ port, host: "127.0.0.1", ca, ALPNProtocols: ["h2", "http/1.1"] });
  await once(socket, "secureConnect");
  return socket;
}

async function nameShown(port: number): Promise<unknown> {
  const socket = await handshake(port);
  const shown = socket.getPeerCertificate().subject.CN;
  socket.destroy();
  return shown;
}

/** The status of an answer on the agent's connection, and the name on that connection's certificate. */
async function ask(port: number, agent: Agent): Promise<unknown[]> {
  const outgoing = get({ host: "127.0.0.1", port, path: "/v2/health/live", ca, agent });
  const [incoming] = await once(outgoing, "response");
  const shown = incoming.socket.getPeerCertificate().subject.CN;
  await once(incoming.resume(), "end");
  return [incoming.statusCode, shown, outgoing.reusedSocket];
}

test("renewed certificates are taken over while connections live on; broken ones are not", async () => {
  const live = await certificates.copy(server, "live");
  await using service = startCommand(["serve", ...free, ...tls("http", live), ...tls("grpc", live)]);
  const grpcPort = await portIn(service, "GRPCInferenceService");
  const httpPort = await portIn(service, "HTTPService");
  const agent = new HttpsAgent({ keepAlive: true, maxSockets: 1 });
  expect(await ask(httpPort, agent)).toEqual([200, "server", false]);

  const next = await certificates.copy(renewed, "next");
  await rename(next.certificate, live.certificate);
  const twice = async () => [await logged(service, /certificates/), await logged(service, /certificates/)];
  const said = (what: string, level: number) =>
    ["grpc", "http"].map((face) =>
      expect.objectContaining({ msg: `new certificates of ${face} ${what}`, level }),
    );
  const sorted = (lines: { msg: string }[]) => lines.sort((a, b) => (a.msg < b.msg ? -1 : 1));
  expect(sorted(await twice())).toEqual(said("cannot be used: those before stay in use", 40));
  expect([await nameShown(httpPort), await nameShown(grpcPort)]).toEqual(["server", "server"]);

  await rename(next.key, live.key);
  expect(sorted(await twice())).toEqual(said("are in use", 30));
  expect([await nameShown(httpPort), await nameShown(grpcPort)]).toEqual(["renewed", "renewed"]);
  expect(await ask(httpPort, agent)).toEqual([200, "server", true]);
  agent.destroy();
  expect(await service.kill("SIGTERM")).toEqual({ code: 0, signal: null });
});

test("certificates that cannot be used end with code 2 and every problem in one message", async () => {
  const mixed = { certificate: server.certificate, key: renewed.key };
  const missing = { certificate: "/no/such.crt", key: server.key };
  const args = [...tls("http", mixed), ...tls("grpc", missing)];
  const { code, lines, errorText } = await runCommand(["serve", ...free, ...args]);
  expect({ code, lines }).toEqual({ code: 2, lines: [] });
  expect(errorText).toBe(
    [
      "cudashm: the command line or environment has 2 problems:",
      "  - --http-server-key: it is not the key of the certificate",
      "  - --grpc-server-cert: there is no file /no/such.crt",
      "See: cudashm serve --help",
      "",
    ].join("\n"),
  );
});

test("SIGTERM with silent and parked connections on TLS and sockets ends with code 0 well before any timeout", async () => {
  const socket = join(folder, "http.sock");
  const args = [...tls("http", server), ...tls("grpc", server), `--http-socket=${socket}`];
  await using service = startCommand(["serve", ...free, ...args]);
  const grpcPort = await portIn(service, "GRPCInferenceService");
  const httpPort = await portIn(service, "HTTPService");
  await logged(service, /unix:/);
  const silent = [connect(httpPort, "127.0.0.1"), connect(grpcPort, "127.0.0.1"), connect(socket)];
  await Promise.all(silent.map((peer) => once(peer.resume(), "connect")));
  const through = [await handshake(httpPort), await handshake(grpcPort)];
  const parked = [await handshake(httpPort), connect(socket)];
  for (const peer of parked) {
    peer.write("GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n");
    await once(peer, "data");
  }
  const all = [...silent, ...through, ...parked];
  const closed = all.map((peer) => once(peer.on("error", () => {}).resume(), "close"));
  const begun = performance.now();
  expect(await service.kill("SIGTERM")).toEqual({ code: 0, signal: null });
  expect(performance.now() - begun).toBeLessThan(2000);
  await Promise.all(closed);
  expect(await readdir(folder)).toEqual([]);
});

test("the socket that a killed service leaves behind does not keep its successor out", async () => {
  const sockets = [`--http-socket=${join(folder, "h")}`, `--grpc-socket=${join(folder, "g")}`];
  const args = ["serve", ...free, "--http-tcp=false", "--grpc-tcp=false", ...sockets];
  await using killed = startCommand(args);
  await logged(killed, /^Started HTTPService/);
  const { code, errorText } = await runCommand(args);
  expect(code).toBe(1);
  expect(errorText).toMatch(
    /^cudashm: cannot listen on unix:\S+ for (http|grpc): another process listens there; stop it or choose another path\n$/,
  );
  await killed.kill("SIGKILL");
  expect((await readdir(folder)).sort()).toEqual(["g", "h"]);

  await using successor = startCommand(args);
  await logged(successor, /^Started HTTPService/);
  await once(connect(join(folder, "h")), "connect");
  expect(await successor.kill("SIGTERM")).toEqual({ code: 0, signal: null });
  expect(await readdir(folder)).toEqual([]);
});

test("a file in a socket's place ends with code 1 and stays", async () => {
  await writeFile(join(folder, "h"), "precious");
  const { code, errorText } = await runCommand(["serve", ...free, `--http-socket=${join(folder, "h")}`]);
  expect({ code, errorText }).toEqual({
    code: 1,
    errorText: `cudashm: cannot listen on unix:${join(folder, "h")} for http: there is something that is no socket; remove it or choose another path\n`,
  });
  expect(await readdir(folder)).toEqual(["h"]);
});
