import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { setTimeout } from "node:timers/promises";

/** A port of 127.0.0.1 that nobody listens on now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no port to listen on");
  return address.port;
}

const patienceMs = 30_000;
const pauseMs = 1;

/** Resolves when `isUp` does with true; rejects after 30 s, or if `hasEnded`. */
export async function untilUp(isUp: () => Promise<boolean>, hasEnded: () => boolean): Promise<void> {
  const deadline = performance.now() + patienceMs;
  while (performance.now() < deadline && !hasEnded()) {
    if (await isUp()) return;
    await setTimeout(pauseMs);
  }
  throw new Error("a server of the benchmark did not start");
}

/** Whether somebody listens on the port. */
export async function accepts(port: number): Promise<boolean> {
  const socket = await dial(port);
  socket?.destroy();
  return socket !== null;
}

/** Whether `GET path` is answered 200 there. Over a plain socket: fetch would have to warm up first. */
export async function answersOk(port: number, path: string): Promise<boolean> {
  const socket = await dial(port);
  if (socket === null) return false;
  socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`);
  let head = "";
  for await (const piece of socket.setEncoding("latin1")) head += piece;
  return head.startsWith("HTTP/1.1 200 ");
}

function dial(port: number): Promise<Socket | null> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(socket)).once("error", () => resolve(null));
  });
}
