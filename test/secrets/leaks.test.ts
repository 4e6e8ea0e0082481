import { randomBytes } from "node:crypto";
import { inspect } from "node:util";
import { expect, test, vi } from "vitest";
import { IpcMemHandle } from "../../src/core/handle.js";

/** The keeper of secrets anew, with nothing told yet. */
async function keeper() {
  vi.resetModules();
  return import("../helpers/secrets.js");
}

const bytes = randomBytes(64);

test.each([
  ["as it is", () => bytes.toString("latin1")],
  ["in base64", () => `{"b64":"${bytes.toString("base64")}"}`],
  ["in base64 for URLs", () => bytes.toString("base64url")],
  ["in hexadecimal", () => bytes.toString("hex")],
  ["as a Buffer is printed", () => inspect(bytes)],
  ["as a Buffer is serialised", () => JSON.stringify(bytes)],
  ["as numbers", () => bytes.join(", ")],
])("a handle that is told %s is a leak", async (_, write) => {
  const { keepSecret, told, leaks } = await keeper();
  keepSecret("a handle", bytes);
  told("nothing of it");
  expect(leaks()).toEqual([]);
  told(`error: ${write()}`);
  expect(leaks()).toHaveLength(1);
});

test("a handle in an object that is told, and in a log that is read later, is a leak", async () => {
  const { keepSecret, told, tellsLater, leaks } = await keeper();
  keepSecret("a handle", bytes);
  told({ cause: { handle: bytes } });
  const lines: object[] = [];
  tellsLater(() => lines);
  lines.push({ msg: "registered", handle: bytes.toString("base64") });
  expect(leaks()).toHaveLength(2);
});

test("any handle of the emulated driver is a leak, and so is a device pointer", async () => {
  const { keepPointerSecret, told, leaks } = await keeper();
  keepPointerSecret(0x7f00_1234_5678n);
  told(Buffer.from(`CUDASHM-EMULATED${"x".repeat(48)}`).toString("base64"));
  told("at 0x7f0012345678");
  told("at 139638282147448");
  expect(leaks()).toHaveLength(3);
});

test("what a handle shows of itself is none", async () => {
  const { keepSecret, told, leaks } = await keeper();
  keepSecret("a handle", bytes);
  const handle = new IpcMemHandle(bytes);
  told(handle);
  told(`${handle} ${JSON.stringify({ handle })}`);
  expect(leaks()).toEqual([]);
});
