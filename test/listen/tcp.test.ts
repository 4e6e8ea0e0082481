import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { closed, listenOnAll } from "../../src/listen/tcp.js";

// Linux answers on all of 127.0.0.0/8.
const one = "127.0.0.1";
const two = "127.0.0.2";

async function listen(addresses: readonly string[], port = 0): Promise<number> {
  const listeners = await listenOnAll(addresses, port, {}, (socket) => socket.destroy());
  onTestFinished(async () => void (await Promise.all(listeners.servers.map(closed))));
  return listeners.port;
}

async function connected(port: number, host: string): Promise<Socket> {
  const socket = connect(port, host);
  onTestFinished(() => void socket.destroy());
  socket.resume();
  await once(socket, "connect");
  return socket;
}

test("one free port is taken on every address", async () => {
  const port = await listen([one, two]);
  expect(port).toBeGreaterThan(0);
  await connected(port, one);
  await connected(port, two);
});

test.each([
  ["first", one],
  ["second", two],
])("if the %s address is taken, none is listened on", async (_which, taken) => {
  const other = createServer().listen(0, taken);
  onTestFinished(() => void other.close());
  await once(other, "listening");
  const { port } = other.address() as { port: number };
  await expect(listenOnAll([one, two], port, {}, () => {})).rejects.toMatchObject({ code: "EADDRINUSE" });
  await expect(connected(port, taken === one ? two : one)).rejects.toMatchObject({ code: "ECONNREFUSED" });
});

test.each([
  ["before", ["198.51.100.1", one]],
  ["after", [one, "198.51.100.1"]],
])("an address that this machine lacks is left out %s one that it has", async (_where, addresses) => {
  const port = await listen(addresses);
  await connected(port, one);
});

test("addresses that this machine lacks are refused if there is no other", async () => {
  await expect(listenOnAll(["198.51.100.1", "203.0.113.1"], 0, {}, () => {})).rejects.toMatchObject({
    code: "EADDRNOTAVAIL",
  });
});
