import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ServiceProcess } from "../../src/cli/service-process.js";
import { startService } from "../helpers/cudashm.js";

const MiB = 2 ** 20;
const bodyBytes = 2048 * MiB;
const path = "/v2/cudasharedmemory/region/large/register";

let service: ServiceProcess;
beforeAll(async () => {
  service = await startService();
});
afterAll(async () => {
  expect(await service.stop()).toEqual({ code: 0, signal: null });
});

test("a body of 2 GiB is thrown away as it comes and then refused, on a connection that goes on", {
  timeout: 60_000,
}, async () => {
  const socket = connect(Number(new URL(service.httpUrl).port), "127.0.0.1");
  socket.setEncoding("latin1");
  await once(socket, "connect");
  const before = memoryKiB("VmRSS");

  socket.write(`POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${bodyBytes}\r\n\r\n`);
  const piece = Buffer.alloc(MiB, " ");
  for (let sent = 0; sent < bodyBytes; sent += piece.length) {
    if (!socket.write(piece)) await once(socket, "drain");
  }
  const refused = await answer(socket);
  expect(refused).toMatch(/^HTTP\/1\.1 400 /);
  expect(JSON.parse(bodyOf(refused))).toEqual({
    error: `request JSON size of ${bodyBytes} bytes exceeds the maximum allowed input size of ${MiB} bytes. Use --http-max-input-size to increase the limit.`,
  });
  // VmHWM is the most it ever was, so no peak in between is missed. What was read waits for the garbage collector,
  // which lets some 60 MiB gather, of whatever size the body is; buffering it would take 2 GiB.
  expect(memoryKiB("VmHWM") - before).toBeLessThan((128 * MiB) / 1024);

  socket.write("GET /v2/cudasharedmemory/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  expect(bodyOf(await answer(socket))).toBe("[]");
});

function memoryKiB(field: "VmRSS" | "VmHWM"): number {
  const status = readFileSync(`/proc/${service.process.pid}/status`, "latin1");
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]);
}

/** One answer with a Content-Length, whole. */
async function answer(socket: Socket): Promise<string> {
  let text = "";
  for (;;) {
    const [piece] = (await once(socket, "data")) as [string];
    text += piece;
    const length = /^content-length: (\d+)\r$/im.exec(text)?.[1];
    if (text.includes("\r\n\r\n") && bodyOf(text).length >= Number(length)) return text;
  }
}

function bodyOf(text: string): string {
  return text.slice(text.indexOf("\r\n\r\n") + 4);
}
