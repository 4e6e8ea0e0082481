import { once } from "node:events";
import { connect as connectHttp2, constants } from "node:http2";
import { connect, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { expect, onTestFinished, test } from "vitest";
import { addGrpcServices, listenGrpc } from "../../src/grpc/server.js";
import { addressOf, createCaller, createClient, createTestFace, portOf, startServer } from "./harness.js";

const hasIpv6 = Object.values(networkInterfaces()).some((list) =>
  list?.some(({ family }) => family === "IPv6"),
);
const ipv6 = <T>(...cases: T[]): T[] => (hasIpv6 ? cases : []);

const never = new AbortController().signal;

async function openSocket(port: number, host = "127.0.0.1"): Promise<Socket> {
  const socket = connect(port, host);
  onTestFinished(() => void socket.destroy());
  // Read what comes, so that the end of it is seen.
  socket.resume();
  await once(socket, "connect");
  return socket;
}

function refused(port: number, host = "127.0.0.1"): Promise<boolean> {
  return openSocket(port, host).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === "ECONNREFUSED",
  );
}

test.each(["127.0.0.1", "localhost", "0.0.0.0", ...ipv6("::", "::1")])("listens on %s", async (host) => {
  const server = await startServer(createTestFace(), { host });
  expect(server.address).toEqual({ host, port: expect.any(Number) });
  expect(portOf(server)).toBeGreaterThan(0);
  const reachable = host === "::1" ? "[::1]" : "127.0.0.1";
  const call = createCaller(`${reachable}:${portOf(server)}`);
  expect((await call("ServerLive")).response).toEqual({ live: true });
});

test.each([
  ["127.0.0.1", "127.0.0.1"],
  ["127.0.0.1", "localhost"],
  ["localhost", "127.0.0.1"],
  ["localhost", "localhost"],
  ...ipv6(["::", "0.0.0.0"]),
  ["0.0.0.0", "127.0.0.1"],
])("a port in use on %s is refused to a second server on %s", async (first, second) => {
  const port = portOf(await startServer(createTestFace(), { host: first }));
  const attempt = listenGrpc(createTestFace().context, { host: second, port });
  await expect(attempt).rejects.toMatchObject({
    code: "EADDRINUSE",
    message: expect.stringContaining(`:${port}`),
  });
});

test("an address that this machine does not have is refused", async () => {
  await expect(listenGrpc(createTestFace().context, { host: "198.51.100.1", port: 0 })).rejects.toMatchObject(
    {
      code: "EADDRNOTAVAIL",
    },
  );
});

test("close lets a call on its way end, and accepts no other", async () => {
  const face = createTestFace();
  const server = await startServer(face);
  const call = createCaller(addressOf(server));
  let release = () => {};
  const begun = new Promise<void>((tellBegun) => {
    face.driver.beforeOpen = () =>
      new Promise((resolve) => {
        release = resolve;
        tellBegun();
      });
  });
  const answer = call("CudaSharedMemoryRegister", face.goodRegister);
  await begun;
  const closed = server.close(never);
  expect(await refused(portOf(server))).toBe(true);
  release();
  expect(await answer).toMatchObject({ code: "OK" });
  await closed;
});

test("close waits for no idle connection", async () => {
  const server = await startServer(createTestFace());
  await createCaller(addressOf(server))("ServerLive");
  const silent = await openSocket(portOf(server));
  const silentGone = once(silent, "close");
  await server.close(never);
  await silentGone;
  expect(await refused(portOf(server))).toBe(true);
});

test("close ends by force what is left when its deadline passes, and may be called again", async () => {
  const face = createTestFace();
  const server = await startServer(face);
  const call = createCaller(addressOf(server));
  const begun = new Promise<void>((tellBegun) => {
    face.driver.beforeOpen = () => {
      tellBegun();
      return new Promise(() => {});
    };
  });
  const answer = call("CudaSharedMemoryRegister", face.goodRegister);
  await begun;
  const deadline = new AbortController();
  const first = server.close(deadline.signal);
  const second = server.close(never);
  deadline.abort();
  await Promise.all([first, second, server.close(AbortSignal.abort())]);
  expect((await answer).code).not.toBe("OK");
});

test("open streams end when the service stops, so that close needs no force", async () => {
  const face = createTestFace();
  const server = await startServer(face);
  // biome-ignore lint/suspicious/noExplicitAny: grpc-js types dynamic clients no closer.
  const health = createClient(addressOf(server), "grpc.health.v1.Health") as any;
  const watch = health.Watch({ service: "" });
  await once(watch, "data");
  const ended = once(watch, "end");
  watch.resume();
  face.shutdown.abort();
  await server.close(never);
  await ended;
});

test("a client that pings more often than Triton allows is not sent away", async () => {
  const server = await startServer(createTestFace());
  const session = connectHttp2(`http://${addressOf(server)}`);
  onTestFinished(() => session.destroy());
  await once(session, "connect");
  let goneAway = false;
  session.on("goaway", () => {
    goneAway = true;
  });
  for (let i = 0; i < 20; i++) {
    await new Promise<void>((resolve, reject) => {
      session.ping((error) => (error ? reject(error) : resolve()));
    });
  }
  expect(goneAway).toBe(false);
  expect(session.closed).toBe(false);
});

test("a peer that no longer answers is dropped, and one that does is kept", async () => {
  const server = await startServer(createTestFace(), { keepaliveTimeMs: 20, keepaliveTimeoutMs: 20 });
  const alive = connectHttp2(`http://${addressOf(server)}`);
  onTestFinished(() => alive.destroy());
  await once(alive, "connect");
  let pings = 0;
  alive.on("ping", () => pings++);

  const dead = await openSocket(portOf(server));
  // The client's preface and empty settings; the pings that follow are never answered.
  dead.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u0004\0\0\0\0\0", "latin1");
  await once(dead, "close");
  while (pings < 5) await once(alive, "ping");
  expect(alive.destroyed).toBe(false);
});

test("what is not gRPC does not stop the server", async () => {
  const server = await startServer(createTestFace());
  const http1 = await openSocket(portOf(server));
  http1.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  await once(http1, "close");
  const noise = await openSocket(portOf(server));
  noise.write(Buffer.alloc(1000, 0xff));
  await once(noise, "close");

  const session = connectHttp2(`http://${addressOf(server)}`);
  onTestFinished(() => session.destroy());
  const statuses: unknown[] = [];
  for (const headers of [
    { ":path": "/", ":method": "GET" },
    { ":path": "/v2", ":method": "POST", "content-type": "application/json" },
    {
      ":path": "/inference.GRPCInferenceService/Model\u00e9",
      "content-type": "application/grpc",
      ":method": "POST",
    },
    { ":path": "/%zz", "content-type": "application/grpc", ":method": "POST" },
  ]) {
    const stream = session.request(headers, { endStream: true });
    const closed = once(stream, "close");
    stream.on("error", () => {});
    stream.on("response", (response) => statuses.push([response[":status"], response["grpc-status"]]));
    stream.resume();
    await closed;
  }
  expect(statuses.slice(0, 2)).toEqual([
    [constants.HTTP_STATUS_UNSUPPORTED_MEDIA_TYPE, undefined],
    [constants.HTTP_STATUS_UNSUPPORTED_MEDIA_TYPE, undefined],
  ]);
  expect(statuses.at(-1)).toEqual([200, "12"]);
  expect((await createCaller(addressOf(server))("ServerLive")).response).toEqual({ live: true });
});

test("the services can be added to a grpc-js server of one's own", async () => {
  const face = createTestFace();
  const own = new Server();
  addGrpcServices(own, face.context);
  const port = await new Promise<number>((resolve, reject) => {
    own.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  onTestFinished(() => own.forceShutdown());
  const call = createCaller(`127.0.0.1:${port}`);
  expect(await call("CudaSharedMemoryRegister", face.goodRegister)).toMatchObject({ code: "OK" });
  expect(await createCaller(`127.0.0.1:${port}`, "grpc.health.v1.Health")("Check")).toMatchObject({
    response: { status: "SERVING" },
  });
});
