import { mkdtemp, rmdir } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { listenHttp } from "../../src/http/server.js";
import { TlsFiles } from "../../src/listen/tls-files.js";
import { CertificateFolder } from "../helpers/certificates.js";
import { connectionSuite } from "./connection-suite.js";
import { Face, RawConnection } from "./face.js";

describe("over TCP", () => {
  connectionSuite((options) => Face.start(options));

  it("is answered 408 where a request does not arrive in time", async () => {
    await using face = await Face.start();
    const timeouts = { headersTimeout: 20, requestTimeout: 20, connectionsCheckingInterval: 10 };
    const server = await listenHttp(face.app, { host: "127.0.0.1", port: 0, timeouts });
    const connection = await RawConnection.open(server.address?.port ?? 0);
    connection.send("GET /v2 HTTP/1.1\r\nHos");
    expect(await connection.untilClosed()).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/);
    await server.close(AbortSignal.abort());
  });

  it("rejects with the system's error where the port is taken", async () => {
    await using face = await Face.start();
    expect(face.server.address?.host).toBe("127.0.0.1");
    await expect(listenHttp(face.app, { host: "127.0.0.1", port: face.port })).rejects.toMatchObject({
      code: "EADDRINUSE",
    });
  });
});

describe("over a Unix socket", () => {
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "cudashm-http-"));
  });

  afterAll(async () => {
    // Every face has taken its socket away.
    await rmdir(folder);
  });

  connectionSuite((options) => {
    const path = join(folder, "s");
    const places = { host: null, port: 0, unixSocket: { path, mode: 0o600, gid: null } };
    return Face.start({ ...options, transport: { places, connect: () => connect(path) } });
  });
});

describe("over TLS", () => {
  let certificates: CertificateFolder;
  let tls: TlsFiles;
  let ca: Buffer;

  beforeAll(async () => {
    certificates = await CertificateFolder.create();
    const root = await certificates.makeRoot("root");
    ca = await certificates.read(root);
    tls = await TlsFiles.open({ ...(await certificates.make("server", root)), clientRoots: null });
  });

  afterAll(() => certificates[Symbol.asyncDispose]());

  connectionSuite((options) => {
    const places = { host: "127.0.0.1", port: 0, tls };
    const open = (port: number) => connectTls({ port, host: "127.0.0.1", ca });
    return Face.start({ ...options, transport: { places, connect: open } });
  });
});
