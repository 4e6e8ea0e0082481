import { once } from "node:events";
import { chmod, lstat, mkdtemp, readdir, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { closed } from "../../src/listen/tcp.js";
import { isSocketPath, listenUnix, type UnixSocketOptions } from "../../src/listen/unix-socket.js";

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "cudashm-socket-"));
  path = join(folder, "s.sock");
  return () => rm(folder, { recursive: true });
});

function greet(socket: Socket): void {
  // Who only looks whether somebody listens is gone before it can be greeted.
  socket.on("error", () => {}).end("hello");
}

async function listen(options: Partial<UnixSocketOptions> = {}) {
  const listener = await listenUnix({ path, mode: 0o600, gid: null, ...options }, {}, greet);
  onTestFinished(async () => void (await closed(listener.server)));
  return listener;
}

async function greeting(): Promise<string> {
  const socket = connect(path).setEncoding("utf8");
  const [text] = await once(socket, "data");
  socket.destroy();
  return text;
}

/** A socket that a killed process left behind. */
async function leaveStaleSocket(): Promise<void> {
  const other = createServer().listen(join(folder, "bound"));
  await once(other, "listening");
  await rename(join(folder, "bound"), path);
  await closed(other);
}

/** `work` where what root may is not allowed. */
async function asOrdinaryUser(work: () => Promise<void>): Promise<void> {
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(65534);
  try {
    await work();
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}

test("a client connects at the path, and nothing else is left in the folder", async () => {
  await listen();
  expect(await greeting()).toBe("hello");
  expect(await readdir(folder)).toEqual(["s.sock"]);
});

test.each([0o600, 0o660, 0o666, 0o000])("the file has mode %o, whatever the process's mask", async (mode) => {
  const before = process.umask(0o077);
  onTestFinished(() => void process.umask(before));
  await listen({ mode });
  expect((await stat(path)).mode & 0o7777).toBe(mode);
});

test("the file belongs to the group it is given to, and to this user", async () => {
  // Root may give to any; others to one that they are in.
  const gid = process.getuid?.() === 0 ? 12345 : (process.getgroups?.().at(-1) ?? 0);
  await listen({ gid });
  expect(await stat(path)).toMatchObject({ uid: process.getuid?.(), gid });
});

test("a socket that nobody listens on is replaced", async () => {
  await leaveStaleSocket();
  await listen();
  expect(await greeting()).toBe("hello");
});

test("a socket that somebody listens on is refused, and goes on", async () => {
  await listen();
  await expect(listen()).rejects.toThrow("another process listens there; stop it or choose another path");
  expect(await greeting()).toBe("hello");
  expect(await readdir(folder)).toEqual(["s.sock"]);
});

test("a file is refused and left as it is", async () => {
  await writeFile(path, "precious");
  await expect(listen()).rejects.toThrow("there is something that is no socket; remove it");
  expect((await stat(path)).size).toBe(8);
  expect(await readdir(folder)).toEqual(["s.sock"]);
});

test("a link is refused, even one to a socket", async () => {
  await symlink(join(folder, "elsewhere"), path);
  await expect(listen()).rejects.toThrow("there is something that is no socket; remove it");
  expect((await lstat(path)).isSymbolicLink()).toBe(true);
});

test("a folder that is not there is told", async () => {
  path = join(folder, "missing", "s.sock");
  await expect(listen()).rejects.toThrow(`there is no folder ${join(folder, "missing")}; make it`);
});

test("a folder that this user cannot write to is told", async () => {
  await chmod(folder, 0o555);
  await asOrdinaryUser(() =>
    expect(listen()).rejects.toThrow(`this user cannot write to ${folder}; change that`),
  );
  await chmod(folder, 0o700);
});

test("a group that this user is no member of is told, and nothing is left", async () => {
  await chmod(folder, 0o777);
  await asOrdinaryUser(() =>
    expect(listen({ gid: 54321 })).rejects.toThrow(
      "this user may not give it to group 54321; make the user a member of that group",
    ),
  );
  expect(await readdir(folder)).toEqual([]);
});

test("a socket of which this user cannot tell whether it is in use is refused", async () => {
  await chmod(folder, 0o777);
  await listen({ mode: 0 });
  await asOrdinaryUser(() =>
    expect(listen()).rejects.toThrow("there is a socket of which EACCES does not tell whether it is in use"),
  );
  expect(await readdir(folder)).toEqual(["s.sock"]);
});

test("removing takes the file away, once", async () => {
  const { remove } = await listen();
  remove();
  expect(await readdir(folder)).toEqual([]);
  remove();
});

test("removing leaves the socket of whoever came after", async () => {
  const { remove } = await listen();
  await rm(path);
  await listen();
  remove();
  expect(await greeting()).toBe("hello");
});

test.each([
  ["/run/cudashm/http.sock", true],
  ["run/http.sock", false],
  ["unix:/run/http.sock", false],
  ["/run/cudashm/", false],
  [`/run/${"x".repeat(102)}`, true],
  [`/run/${"x".repeat(103)}`, false],
  [`/${"x".repeat(96)}/s.sock`, true],
  [`/${"x".repeat(97)}/s.sock`, false],
])("isSocketPath(%j) is %s", (candidate, expected) => {
  expect(isSocketPath(candidate)).toBe(expected);
});

test("the longest path there is can be listened on", async () => {
  path = join(folder, "x".repeat(106 - Buffer.byteLength(folder)));
  expect(Buffer.byteLength(path)).toBe(107);
  await listen();
  expect(await greeting()).toBe("hello");
});
