import { once } from "node:events";
import { connect } from "node:net";
import * as http2 from "../../bench/load/http2-frames.js";
import type { RegisterBody } from "../../src/cli/exporter-process.js";
import { region } from "../helpers/http.js";

/** Connects, sends some bytes and goes away: with an end, or with a reset. Resolves when it is gone. */
export async function dropConnection(address: string, bytes: Uint8Array, withReset: boolean): Promise<void> {
  const [host, port] = address.split(":");
  const socket = connect({ host, port: Number(port) });
  // The service may be the first to go.
  socket.on("error", () => {});
  const closed = once(socket, "close");
  socket.once("connect", () => {
    const drop = () => (withReset ? socket.resetAndDestroy() : socket.destroy());
    if (bytes.length === 0) drop();
    else socket.write(bytes, drop);
  });
  await closed;
}

/** What a client of HTTP may have sent when it goes: from nothing to all of a register. */
export function httpBeginnings(name: string, body: RegisterBody): readonly Buffer[] {
  const json = JSON.stringify(body);
  const head = `POST ${region(name, "register")} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${json.length}\r\n\r\n`;
  const status = "GET /v2/cudasharedmemory/status HTTP/1.1\r\nHost: localhost\r\n\r\n";
  return [
    "",
    head.slice(0, 20),
    head.slice(0, -2),
    head + json.slice(0, json.length / 2),
    head + json,
    status + status + status,
  ].map((text) => Buffer.from(text));
}

/** The same of gRPC; `message` is an encoded register. */
export function grpcBeginnings(message: Uint8Array): readonly Buffer[] {
  const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  const settings = http2.settingsFrame([]);
  const headers = http2.requestHeaders("/inference.GRPCInferenceService/CudaSharedMemoryRegister");
  headers.writeUInt32BE(1, 5);
  const data = http2.frame(http2.frameType.data, http2.endStream, 1, http2.grpcMessage(message));
  const all = Buffer.concat([preface, settings, headers, data]);
  const ends = [
    0,
    preface.length / 2,
    preface.length + settings.length / 2,
    preface.length + settings.length + headers.length / 2,
    all.length - data.length / 2,
    all.length,
  ];
  return ends.map((end) => all.subarray(0, Math.floor(end)));
}

/** The first half of what a client of TLS says first. */
export function tlsBeginnings(): readonly Buffer[] {
  const record = Buffer.of(0x16, 3, 1, 2, 0);
  const hello = Buffer.concat([Buffer.of(1, 0, 1, 0xfc, 3, 3), Buffer.alloc(250, 7)]);
  return [Buffer.alloc(0), record.subarray(0, 3), Buffer.concat([record, hello])];
}
