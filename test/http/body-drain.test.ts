import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect, test } from "vitest";
import { BodyDrain, defaultBodyDrainLimits } from "../../src/http/body-drain.js";

test("the body of a client that is gone is given up at once and takes nobody's room", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  client.write("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx");
  const [incoming] = (await once(server, "request")) as [IncomingMessage];
  client.destroy();
  await new Promise((resolve) => incoming.once("close", resolve));

  const drain = new BodyDrain({ ...defaultBodyDrainLimits, concurrent: 1 });
  expect(await drain.drain(incoming, null)).toEqual({ bytes: 0, complete: false });
  expect(drain.hasRoomFor(null)).toBe(true);
  server.close();
});

test("the body of a request that was answered in full is given up when its connection ends", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  client.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\nx");
  const [incoming, outgoing] = (await once(server, "request")) as [IncomingMessage, ServerResponse];
  const drained = new BodyDrain().drain(incoming, 500);
  outgoing.end();
  await once(client, "data");
  client.destroy();
  expect(await drained).toEqual({ bytes: 1, complete: false });
  server.close();
});
