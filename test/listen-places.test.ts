import { readFile } from "node:fs/promises";

import { afterAll, beforeAll, expect, test } from "vitest";
import { UsageError } from "../src/config/usage-error.js";
import { loadConfig } from "../src/config.js";
import { readListenPlaces } from "../src/listen-places.js";
import { CertificateFolder, type Identity } from "./helpers/certificates.js";

let folder: CertificateFolder;
let root: Identity;
let one: Identity;
let two: Identity;

beforeAll(async () => {
  folder = await CertificateFolder.create();
  root = await folder.makeRoot("root");
  one = await folder.make("one", root);
  two = await folder.make("two", root);
});

afterAll(() => folder[Symbol.asyncDispose]());

const places = (...args: string[]) => readListenPlaces(loadConfig(args, {}).config);

const tls = (face: "http" | "grpc", { certificate, key }: Identity) => [
  `--${face}-use-ssl`,
  `--${face}-server-cert=${certificate}`,
  `--${face}-server-key=${key}`,
];

async function problems(...args: string[]): Promise<readonly string[]> {
  const error: unknown = await places(...args).catch((error: unknown) => error);
  if (!(error instanceof UsageError)) throw error;
  return error.problems;
}

test("with nothing given, both faces listen on their ports in plain", async () => {
  expect(await places()).toEqual({
    http: { host: "127.0.0.1", port: 8000, tls: undefined, unixSocket: undefined },
    grpc: { host: "127.0.0.1", port: 8001, tls: undefined, unixSocket: undefined },
  });
});

test("each face has the certificates of its own flags", async () => {
  const mutual = ["--grpc-use-ssl-mutual", `--grpc-root-cert=${root.certificate}`];
  const { http, grpc } = await places(...tls("http", one), ...tls("grpc", two), ...mutual);
  expect(http.tls?.context.cert).toEqual(await readFile(one.certificate));
  expect(http.tls?.wantsClientCertificate).toBe(false);
  expect(grpc.tls?.context.cert).toEqual(await readFile(two.certificate));
  expect(grpc.tls?.context.ca).toEqual(await readFile(root.certificate));
  expect(grpc.tls?.wantsClientCertificate).toBe(true);
});

test("--grpc-use-ssl-mutual alone is TLS, as in Triton", async () => {
  const [, ...files] = tls("grpc", one);
  const { grpc } = await places("--grpc-use-ssl-mutual", ...files, `--grpc-root-cert=${root.certificate}`);
  expect(grpc.tls?.wantsClientCertificate).toBe(true);
});

test("roots are not even read where clients are asked for no certificate", async () => {
  const { http } = await places(...tls("http", one), "--http-root-cert=/nowhere");
  expect(http.tls?.wantsClientCertificate).toBe(false);
});

test("every file that cannot be used is told by its flag, and so is the group", async () => {
  const missing = folder.file("missing");
  const mixed = { certificate: one.certificate, key: two.key };
  expect(
    await problems(
      ...tls("http", mixed),
      ...tls("grpc", { certificate: missing, key: root.certificate }),
      "--grpc-use-ssl-mutual",
      `--grpc-root-cert=${root.key}`,
      "--http-socket=/run/s",
      "--socket-group=no-such-group",
    ),
  ).toEqual([
    "--socket-group: /etc/group has no group no-such-group; give its number",
    "--http-server-key: it is not the key of the certificate",
    `--grpc-server-cert: there is no file ${missing}`,
    "--grpc-server-key: there is no private key in PEM in it",
    "--grpc-root-cert: there is no certificate in PEM in it",
  ]);
});

test("files of a face that is off are not looked at", async () => {
  const nowhere = { certificate: "/nowhere", key: "/nowhere" };
  await places("--allow-grpc=false", ...tls("grpc", nowhere));
});

test.each([
  [[], { mode: 0o600, gid: null }],
  [["--socket-mode=0666"], { mode: 0o666, gid: null }],
  [["--socket-group=123"], { mode: 0o660, gid: 123 }],
  [["--socket-group=root"], { mode: 0o660, gid: 0 }],
  [["--socket-group=root", "--socket-mode=0777"], { mode: 0o777, gid: 0 }],
])("a socket with %j is for %j", async (args, expected) => {
  const { http, grpc } = await places("--http-socket=/run/h", "--grpc-socket=/run/g", ...args);
  expect(http.unixSocket).toEqual({ path: "/run/h", ...expected });
  expect(grpc.unixSocket).toEqual({ path: "/run/g", ...expected });
});

test("a face without a port has no host to listen on", async () => {
  const { http, grpc } = await places("--http-tcp=false", "--http-socket=/run/h");
  expect([http.host, grpc.host]).toEqual([null, "127.0.0.1"]);
});
