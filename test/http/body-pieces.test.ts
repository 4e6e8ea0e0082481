import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { BodyPieces } from "../../src/http/body-pieces.js";

const server = createServer();
let port = 0;

beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  port = (server.address() as { port: number }).port;
});

afterAll(() => {
  server.close();
});

/** A request of which the head has arrived, and the client that sent it. */
async function request(head: string): Promise<{ client: Socket; incoming: IncomingMessage }> {
  const arrived = once(server, "request") as Promise<[IncomingMessage, ServerResponse]>;
  const client = connect(port, "127.0.0.1");
  client.write(`PUT / HTTP/1.1\r\nHost: localhost\r\n${head}\r\n\r\n`);
  const [incoming] = await arrived;
  return { client, incoming };
}

async function textOf(pieces: BodyPieces): Promise<string> {
  let text = "";
  for await (const piece of pieces) text += Buffer.from(piece).toString("latin1");
  return text;
}

test("a body comes in order, whatever pieces it was sent in", async () => {
  const { client, incoming } = await request("Transfer-Encoding: chunked");
  const text = textOf(new BodyPieces(incoming));
  for (const letter of "abcdefgh") client.write(`1\r\n${letter}\r\n`);
  client.write("0\r\n\r\n");
  expect(await text).toBe("abcdefgh");
  client.destroy();
});

test("a body of no bytes ends at once, and stays ended", async () => {
  const { client, incoming } = await request("Content-Length: 0");
  const pieces = new BodyPieces(incoming);
  expect(await pieces.next()).toEqual({ done: true, value: undefined });
  expect(await pieces.next()).toEqual({ done: true, value: undefined });
  client.destroy();
});

test("one that has ended before anyone asked has nothing more", async () => {
  const { client, incoming } = await request("Content-Length: 0");
  incoming.resume();
  await once(incoming, "end");
  expect(await new BodyPieces(incoming).next()).toEqual({ done: true, value: undefined });
  client.destroy();
});

test("a client that goes away is told of after what it had sent", async () => {
  const { client, incoming } = await request("Content-Length: 4");
  const pieces = new BodyPieces(incoming);
  client.write("ab");
  expect(Buffer.from((await pieces.next()).value ?? []).toString()).toBe("ab");
  const rest = pieces.next();
  client.destroy();
  await expect(rest).rejects.toMatchObject({ code: "CANCELLED" });
  await expect(pieces.next()).rejects.toMatchObject({ code: "CANCELLED" });
});

test("nothing is taken from the client until it is asked for, but for one piece", async () => {
  const { client, incoming } = await request(`Content-Length: ${2 ** 24}`);
  const pieces = new BodyPieces(incoming);
  const paused = once(incoming, "pause");
  client.write(Buffer.alloc(2 ** 24));
  await paused;
  expect((await pieces.next()).value?.byteLength).toBeGreaterThan(0);
  expect(incoming.isPaused()).toBe(true);
  expect(client.writableLength).toBeGreaterThan(0);
  await pieces.return();
  client.destroy();
});

test("whoever stops early leaves the rest where it is, and hears of nothing more", async () => {
  const { client, incoming } = await request("Content-Length: 4");
  const pieces = new BodyPieces(incoming);
  client.write("ab");
  await pieces.next();
  await pieces.return();
  expect(["data", "end", "close"].map((event) => incoming.listenerCount(event))).toEqual([0, 0, 0]);
  client.write("cd");
  incoming.resume();
  const [rest] = (await once(incoming, "data")) as [Buffer];
  expect(rest.toString()).toBe("cd");
  client.destroy();
});
