import { readFile, rename, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TlsFiles, type TlsPaths } from "../../src/listen/tls-files.js";
import { TlsError } from "../../src/listen/tls-material.js";
import { CertificateFolder, type Identity } from "../helpers/certificates.js";

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

const pathsOf = (identity: Identity, clientRoots: string | null = null): TlsPaths => ({
  ...identity,
  clientRoots,
});

async function problems(paths: TlsPaths): Promise<string[]> {
  const error: unknown = await TlsFiles.open(paths).catch((error: unknown) => error);
  if (!(error instanceof TlsError)) throw error;
  return error.problems.map(({ part, text }) => `${part}: ${text}`);
}

async function write(name: string, content: string): Promise<string> {
  await writeFile(folder.file(name), content);
  return folder.file(name);
}

test("what belongs together is taken", async () => {
  const files = await TlsFiles.open(pathsOf(one, root.certificate));
  expect(files.context).toEqual({
    cert: await readFile(one.certificate),
    key: await readFile(one.key),
    ca: await readFile(root.certificate),
  });
  expect(files.wantsClientCertificate).toBe(true);
  expect((await TlsFiles.open(pathsOf(one))).wantsClientCertificate).toBe(false);
});

test("a certificate followed by those above it is taken", async () => {
  const chain = (await readFile(one.certificate, "utf8")) + (await readFile(root.certificate, "utf8"));
  const certificate = await write("chain.crt", chain);
  expect((await TlsFiles.open(pathsOf({ ...one, certificate }))).context.cert?.toString()).toBe(chain);
});

test("every file that is missing is told", async () => {
  const missing = folder.file("missing");
  expect(await problems({ certificate: missing, key: missing, clientRoots: missing })).toEqual([
    `certificate: there is no file ${missing}`,
    `key: there is no file ${missing}`,
    `clientRoots: there is no file ${missing}`,
  ]);
});

test("files of something else are told, roots too", async () => {
  const noise = await write("noise", "-----BEGIN NOISE-----\n");
  expect(await problems({ certificate: noise, key: noise, clientRoots: noise })).toEqual([
    "certificate: there is no certificate in PEM in it",
    "key: there is no private key in PEM in it",
    "clientRoots: there is no certificate in PEM in it",
  ]);
});

test("a folder in a file's place is told", async () => {
  expect(await problems({ ...pathsOf(one), key: folder.path })).toEqual([
    expect.stringMatching(/^key: EISDIR/),
  ]);
});

test("the key of another certificate is told", async () => {
  expect(await problems(pathsOf({ ...one, key: two.key }))).toEqual([
    "key: it is not the key of the certificate",
  ]);
});

test("an encrypted key is told", async () => {
  expect(await problems(pathsOf({ ...one, key: await folder.encryptKey(one) }))).toEqual([
    "key: the key is encrypted; store it without a passphrase, readable by this user only",
  ]);
});

test("roots of which the last is cut off are told", async () => {
  const whole = await readFile(root.certificate, "utf8");
  const clientRoots = await write("cut.crt", whole + whole.slice(0, 200));
  expect(await problems(pathsOf(one, clientRoots))).toEqual([
    "clientRoots: there is no certificate in PEM in it",
  ]);
});

test("a look at files that are as they were changes nothing", async () => {
  const files = await TlsFiles.open(pathsOf(one));
  let changes = 0;
  files.onChange(() => changes++);
  expect(await files.look()).toBe(false);
  expect(changes).toBe(0);
});

/** Ways in which `live` comes to hold the certificate and key of `two`. */
const replacements: Record<string, (live: Identity) => Promise<unknown>> = {
  "written anew": async (live) => {
    await writeFile(live.certificate, await readFile(two.certificate));
    await writeFile(live.key, await readFile(two.key));
  },
  "replaced by a rename": async (live) => {
    const next = await folder.copy(two, "next");
    await rename(next.certificate, live.certificate);
    await rename(next.key, live.key);
  },
  "behind a link that turned": async (live) => {
    await rm(live.certificate);
    await symlink(two.certificate, live.certificate);
    await rm(live.key);
    await symlink(two.key, live.key);
  },
};

test.each(Object.keys(replacements))("a look finds files %s, and listeners hear of it", async (how) => {
  const live = await folder.copy(one, "live");
  const files = await TlsFiles.open(pathsOf(live));
  let heard = 0;
  const leave = files.onChange(() => heard++);
  await replacements[how]?.(live);
  expect(await files.look()).toBe(true);
  expect(files.context).toEqual({ cert: await readFile(two.certificate), key: await readFile(two.key) });
  expect(heard).toBe(1);
  expect(await files.look()).toBe(false);
  leave();
  await rm(live.certificate);
  await rm(live.key);
});

test("what cannot be used is told once and leaves what was; the rest of it mends that", async () => {
  const live = await folder.copy(one, "live");
  const files = await TlsFiles.open(pathsOf(live));
  const before = files.context;
  let heard = 0;
  files.onChange(() => heard++);

  await writeFile(live.certificate, await readFile(two.certificate));
  await expect(files.look()).rejects.toThrow("it is not the key of the certificate");
  expect(await files.look()).toBe(false);
  await truncate(live.key, 10);
  await expect(files.look()).rejects.toThrow("there is no private key in PEM in it");
  await rm(live.key);
  await expect(files.look()).rejects.toThrow(`there is no file ${live.key}`);
  expect(files.context).toBe(before);
  expect(heard).toBe(0);

  await writeFile(live.key, await readFile(two.key));
  expect(await files.look()).toBe(true);
  expect(heard).toBe(1);
  expect(new Date(files.validTo).getTime()).toBeGreaterThan(Date.now());
});
