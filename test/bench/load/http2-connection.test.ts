import { Server, ServerCredentials, type ServerReadableStream, status } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { type GrpcRequest, Http2Connection } from "../../../bench/load/http2-connection.js";
import {
  endStream,
  frame,
  frameType,
  grpcMessage,
  grpcStatus,
  requestHeaders,
} from "../../../bench/load/http2-frames.js";

const asIs = (bytes: Buffer) => bytes;
const raw = {
  requestSerialize: asIs,
  requestDeserialize: asIs,
  responseSerialize: asIs,
  responseDeserialize: asIs,
};

/** grpc-js answering with as many bytes as the first byte says, in KiB; uploads with how many bytes came. */
async function serve() {
  const server = new Server();
  server.addService(
    {
      answer: { path: "/test.Test/Answer", requestStream: false, responseStream: false, ...raw },
      count: { path: "/test.Test/Count", requestStream: true, responseStream: false, ...raw },
    },
    {
      answer({ request }: { request: Buffer }, callback: (error: object | null, answer?: Buffer) => void) {
        if (request.length === 0) callback({ code: status.NOT_FOUND, details: "nothing" });
        else callback(null, Buffer.alloc((request[0] ?? 0) * 1024));
      },
      count(call: ServerReadableStream<Buffer, Buffer>, callback: (error: null, answer: Buffer) => void) {
        let bytes = 0;
        call.on("data", (message: Buffer) => {
          bytes += message.length;
        });
        call.on("end", () => callback(null, Buffer.alloc(bytes / 1024)));
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { port, [Symbol.dispose]: () => server.forceShutdown() };
}

function unary(message: Buffer): GrpcRequest {
  return {
    headers: requestHeaders("/test.Test/Answer"),
    data: frame(frameType.data, endStream, 0, grpcMessage(message)),
    counts: true,
  };
}

function call(connection: Http2Connection, request: GrpcRequest): Promise<number> {
  const answered = new Promise<number>((resolve) => connection.send(request, resolve));
  return Promise.race([answered, connection.failed]);
}

test("calls side by side on one connection are each answered, one after the other more than fits a window", async () => {
  using server = await serve();
  using connection = await Http2Connection.open(server.port);
  for (let times = 0; times < 20; times++) {
    const calls = [1, 2, 200].map((kib) => call(connection, unary(Buffer.alloc(1000, kib))));
    expect(await Promise.all(calls)).toEqual([1, 2, 200].map((kib) => kib * 1024 + 5));
  }
});

test("a status that is not OK is a failure with its number", async () => {
  using server = await serve();
  using connection = await Http2Connection.open(server.port);
  await expect(call(connection, unary(Buffer.alloc(0)))).rejects.toThrow("grpc-status 5");
});

test("a call that there is none of is a failure with UNIMPLEMENTED", async () => {
  using server = await serve();
  using connection = await Http2Connection.open(server.port);
  const request = { ...unary(Buffer.alloc(1)), headers: requestHeaders("/test.Test/Nothing") };
  await expect(call(connection, request)).rejects.toThrow("grpc-status 12");
});

test("a stream of messages larger than every window arrives whole", async () => {
  using server = await serve();
  using connection = await Http2Connection.open(server.port);
  const kibEach = 63;
  const messages = Array<Buffer>(64).fill(grpcMessage(Buffer.alloc(kibEach * 1024)));
  const request = { headers: requestHeaders("/test.Test/Count"), data: messages, counts: true };
  expect(await call(connection, request)).toBe(64 * kibEach + 5);
  expect(await call(connection, request)).toBe(64 * kibEach + 5);
});

test("a server that is gone is a failure", async () => {
  const server = await serve();
  using connection = await Http2Connection.open(server.port);
  await call(connection, unary(Buffer.alloc(1, 1)));
  server[Symbol.dispose]();
  await expect(connection.failed).rejects.toThrow();
});

test.each([
  ["plain", "000b677270632d73746174757301", "30", "0"],
  ["plain, of two digits", "000b677270632d73746174757302", "3133", "13"],
  ["as Huffman codes", "00889acac8b21234da8f81", "07", "0"],
])("grpc-status is found in a header block: %s", (_, name, value, expected) => {
  expect(grpcStatus(Buffer.from(name + value, "hex"))).toBe(expected);
});

test("a header block without grpc-status has none", () => {
  expect(grpcStatus(Buffer.from("880f100568656c6c6f", "hex"))).toBeNull();
});
