import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { expect, test } from "vitest";
import { encodeHttp, HttpConnection } from "../../../bench/load/http-connection.js";

const request = { bytes: encodeHttp("GET", "/"), counts: true };

/** A server that writes each of `pieces` by itself when a request comes. */
async function serve(pieces: readonly string[]) {
  let onRequest = (_socket: Socket) => {};
  const server = createServer((socket) => {
    socket.setNoDelay(true).on("error", () => {});
    socket.on("data", () => onRequest(socket));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onRequest = (socket) => {
    const [first, ...rest] = pieces;
    socket.write(first ?? "", () => {
      for (const piece of rest) socket.write(piece);
    });
  };
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.dispose]: () => void server.close(),
  };
}

function exchange(connection: HttpConnection): Promise<number> {
  const answered = new Promise<number>((resolve) => connection.send(request, resolve));
  return Promise.race([answered, connection.failed]);
}

test("a request has a Host, and a length if it is no GET", () => {
  expect(encodeHttp("GET", "/a").toString()).toBe("GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  expect(encodeHttp("POST", "/a", "{}").toString()).toBe(
    "POST /a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
  );
  expect(encodeHttp("POST", "/a").toString()).toContain("Content-Length: 0\r\n\r\n");
});

test.each([
  ["in one piece", ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"]],
  ["with an empty body", ["HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]],
  ["broken in the head", ["HTTP/1.1 200 OK\r\ncontent-le", "ngth: 5\r\n\r", "\nhello"]],
  ["broken in the body", ["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe", "ll", "o"]],
])("an answer %s is read to its end, and the next request can be sent", async (_, pieces) => {
  using server = await serve(pieces);
  using connection = await HttpConnection.open(server.port);
  const bytes = pieces.join("").split("\r\n\r\n")[1]?.length;
  expect(await exchange(connection)).toBe(bytes);
  expect(await exchange(connection)).toBe(bytes);
});

test.each([
  [
    "another status",
    "HTTP/1.1 404 Not Found\r\nContent-Length: 6\r\n\r\nno one",
    "HTTP/1.1 404 Not Found no one",
  ],
  ["no length", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "without Content-Length"],
  ["more than its length", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nno", "more bytes than"],
])("an answer with %s is a failure that says so", async (_, answer, text) => {
  using server = await serve([answer]);
  using connection = await HttpConnection.open(server.port);
  await expect(exchange(connection)).rejects.toThrow(text);
});

test("a connection that breaks is a failure", async () => {
  const server = createServer((socket) => socket.once("data", () => socket.destroy())).listen(0, "127.0.0.1");
  await once(server, "listening");
  using connection = await HttpConnection.open((server.address() as AddressInfo).port);
  await expect(exchange(connection)).rejects.toThrow();
  server.close();
});
