import { once } from "node:events";
import { rename } from "node:fs/promises";
import { connect as connectTcp } from "node:net";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { type Listeners, openListeners } from "../../src/listen/listeners.js";
import { TlsFiles } from "../../src/listen/tls-files.js";
import { CertificateFolder, type Identity } from "../helpers/certificates.js";

let folder: CertificateFolder;
let root: Identity;
let otherRoot: Identity;
let server: Identity;
let renewed: Identity;
let client: Identity;
let stranger: Identity;
/** What the service reads, which tests may replace. */
let live: Identity;
let liveRoots: string;

beforeAll(async () => {
  folder = await CertificateFolder.create();
  root = await folder.makeRoot("root");
  otherRoot = await folder.makeRoot("other-root");
  server = await folder.make("server", root);
  renewed = await folder.make("renewed", root);
  client = await folder.make("client", root);
  stranger = await folder.make("stranger", otherRoot);
});

beforeEach(async () => {
  live = await folder.copy(server, "live");
  liveRoots = (await folder.copy(root, "live-roots")).certificate;
});

afterAll(() => folder[Symbol.asyncDispose]());

interface Served {
  readonly files: TlsFiles;
  readonly listeners: Listeners;
  readonly port: number;
  /** Why clients did not get through. */
  readonly refusals: readonly string[];
}

/**
 * A server that greets whoever gets through TLS, and echoes what they say; with `allowHalfOpen` it says goodbye once
 * they have said it all.
 */
async function serve({
  mutual = false,
  alpn = "http/1.1" as "http/1.1" | "h2",
  allowHalfOpen = false,
} = {}): Promise<Served> {
  const files = await TlsFiles.open({ ...live, clientRoots: mutual ? liveRoots : null });
  const refusals: string[] = [];
  files.onRefused = (why) => refusals.push(why);
  const listeners = await openListeners(
    { host: "127.0.0.1", port: 0, tls: files },
    { alpn, allowHalfOpen },
    (socket) => {
      socket.write("hello");
      if (allowHalfOpen) socket.resume().on("end", () => setImmediate(() => socket.end("goodbye")));
      else socket.pipe(socket);
    },
  );
  onTestFinished(async () => {
    const closed = listeners.close();
    listeners.destroyConnections();
    await closed;
  });
  return { files, listeners, port: listeners.address?.port ?? 0, refusals };
}

/** A client that has been greeted; rejects with what kept it from being. */
async function greeted(port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connect({ port, host: "127.0.0.1", ca: await folder.read(root), ...options });
  onTestFinished(() => void socket.destroy());
  const closed = once(socket, "close").then(() => {
    throw new Error("closed without a greeting");
  });
  const [text] = await Promise.race([once(socket, "data"), closed]);
  closed.catch(() => {});
  expect(String(text)).toBe("hello");
  return socket;
}

async function echo(socket: TLSSocket, text: string): Promise<void> {
  socket.write(text);
  const [answer] = await once(socket, "data");
  expect(String(answer)).toBe(text);
}

const nameOf = (socket: TLSSocket) => socket.getPeerCertificate().subject.CN;
const credentialsOf = async (identity: Identity) => ({
  cert: await folder.read(identity),
  key: await folder.readKey(identity),
});

test("a client that trusts the root gets through", async () => {
  const { port } = await serve();
  const socket = await greeted(port);
  expect(nameOf(socket)).toBe("server");
  await echo(socket, "again");
});

test("a client that trusts another root does not take the certificate", async () => {
  const { port } = await serve();
  const trusting = greeted(port, { ca: await folder.read(otherRoot) });
  await expect(trusting).rejects.toMatchObject({ code: "UNABLE_TO_VERIFY_LEAF_SIGNATURE" });
});

test.each(["TLSv1.2", "TLSv1.3"] as const)("%s is spoken", async (version) => {
  const { port } = await serve();
  const socket = await greeted(port, { minVersion: version, maxVersion: version });
  expect(socket.getProtocol()).toBe(version);
});

test.each(["TLSv1", "TLSv1.1"] as const)(
  "%s is refused, whatever the client would do for it",
  async (version) => {
    const { port } = await serve();
    const old = greeted(port, { minVersion: version, maxVersion: version, ciphers: "DEFAULT@SECLEVEL=0" });
    await expect(old).rejects.toMatchObject({ code: "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION" });
  },
);

test.each(["h2", "http/1.1"] as const)(
  "of what a client offers, %s is chosen if it is the face's",
  async (alpn) => {
    const { port } = await serve({ alpn });
    expect((await greeted(port, { ALPNProtocols: ["h2", "http/1.1"] })).alpnProtocol).toBe(alpn);
    const other = alpn === "h2" ? "http/1.1" : "h2";
    await expect(greeted(port, { ALPNProtocols: [other] })).rejects.toMatchObject({
      code: "ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL",
    });
  },
);

test("where a client certificate is wanted, one of the root gets through", async () => {
  const { port } = await serve({ mutual: true });
  await greeted(port, await credentialsOf(client));
});

test.each(["TLSv1.2", "TLSv1.3"] as const)(
  "where a client certificate is wanted, none and one of another root are refused: %s",
  async (version) => {
    const { port, refusals } = await serve({ mutual: true });
    const versions = { minVersion: version, maxVersion: version };
    await expect(greeted(port, versions)).rejects.toThrow();
    await expect(greeted(port, { ...versions, ...(await credentialsOf(stranger)) })).rejects.toThrow();
    await greeted(port, { ...versions, ...(await credentialsOf(client)) });
    expect(refusals).toEqual([
      "ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE",
      "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    ]);
  },
);

test("new files are for new connections; the old ones live on", async () => {
  const { files, port } = await serve();
  const before = await greeted(port);
  await rename((await folder.copy(renewed, "next")).certificate, live.certificate);
  await rename(folder.file("next.key"), live.key);
  expect(await files.look()).toBe(true);
  expect(nameOf(await greeted(port))).toBe("renewed");
  await echo(before, "still here");
  expect(nameOf(before)).toBe("server");
});

test("files that cannot be used change nothing for new connections", async () => {
  const { files, port } = await serve();
  await rename((await folder.copy(renewed, "next")).certificate, live.certificate);
  await expect(files.look()).rejects.toThrow("it is not the key of the certificate");
  expect(nameOf(await greeted(port))).toBe("server");
});

test.each(["TLSv1.2", "TLSv1.3"] as const)(
  "a root that is taken away takes its clients along, also where they resume a session: %s",
  async (version) => {
    const { files, port } = await serve({ mutual: true });
    const options = { minVersion: version, maxVersion: version, ...(await credentialsOf(client)) };
    let session: Buffer | undefined;
    const socket = connect({ port, host: "127.0.0.1", ca: await folder.read(root), ...options });
    socket.on("session", (ticket: Buffer) => {
      session = ticket;
    });
    await once(socket, "data");
    await echo(socket, "a session comes after the handshake");
    socket.destroy();
    expect((await greeted(port, { ...options, session })).isSessionReused()).toBe(true);

    await rename((await folder.copy(otherRoot, "next")).certificate, liveRoots);
    expect(await files.look()).toBe(true);
    await expect(greeted(port, { ...options, session })).rejects.toThrow();
    await greeted(port, { ...options, ...(await credentialsOf(stranger)) });
  },
);

test("what is no TLS is let go, and others are served on", async () => {
  const { port, refusals } = await serve();
  const plain = connectTcp(port, "127.0.0.1");
  plain.on("error", () => {}).resume();
  plain.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  await once(plain, "close");
  const brief = connectTcp(port, "127.0.0.1");
  await once(brief, "connect");
  brief.resetAndDestroy();
  await greeted(port);
  expect(refusals).toEqual(["ERR_SSL_HTTP_REQUEST", "ECONNRESET"]);
});

test("a client that ends in the middle of a handshake is let go at once, and one that is through may end its half", async () => {
  const { port } = await serve({ allowHalfOpen: true });
  for (const said of ["", "160301", "160301010001000000"]) {
    const socket = connectTcp({ port, host: "127.0.0.1", allowHalfOpen: true }).resume();
    socket.on("error", () => {}).end(Buffer.from(said, "hex"));
    await once(socket, "close");
  }
  const through = await greeted(port);
  through.end("the last word");
  expect(String((await once(through, "data"))[0])).toBe("goodbye");
});

test("closing lets go of who is in the middle of a handshake, and waits for who is through", async () => {
  const { listeners, port } = await serve();
  const through = await greeted(port);
  const silent = connectTcp(port, "127.0.0.1").resume();
  await once(silent, "connect");
  const half = connectTcp(port, "127.0.0.1").resume();
  // The beginning of a client's hello.
  half.write(Buffer.from("160301010001000000", "hex"));
  await once(half, "connect");
  // A connection made later is accepted later: the two are known by now.
  await greeted(port);
  let isClosed = false;
  const gone = [silent, half].map((socket) =>
    once(
      socket.on("error", () => {}),
      "close",
    ),
  );
  const closed = listeners.close().then(() => {
    isClosed = true;
  });
  await Promise.all(gone);
  await echo(through, "still here");
  expect(isClosed).toBe(false);
  listeners.destroyConnections();
  await closed;
});
