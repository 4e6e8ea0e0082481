// A bare node:http server: reads and parses what has to be, answers, and checks nothing.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { readServerArguments } from "./arguments.js";
import {
  cudaPath,
  isContentsPath,
  type RegisterBody,
  splitRegionPath,
  statusesOf,
  statusOf,
} from "./http-api.js";
import { createStore } from "./store.js";

const pieceBytes = 1024 * 1024;

const options = readServerArguments();
const store = await createStore(options.store);
const statuses = statusesOf(options.regions);
const piece = Buffer.alloc(pieceBytes, 1);

createServer((request, response) => {
  answer(request, response).catch((error: Error) => respond(response, 500, error.message));
}).listen(options.port, "127.0.0.1");

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = request.url ?? "";
  if (path === `${cudaPath}/status`) return respond(response, 200, JSON.stringify(statuses));
  if (isContentsPath(path)) return await answerContents(request, response);
  const { name, call } = splitRegionPath(path);
  if (call === "register") {
    const { raw_handle, device_id } = JSON.parse(await readBody(request)) as RegisterBody;
    await store.register(name, Buffer.from(raw_handle.b64, "base64"), device_id);
  } else if (call === "unregister") {
    await store.unregister(name);
  } else {
    return respond(response, 200, JSON.stringify([statusOf(name)]));
  }
  respond(response, 200, "");
}

function respond(response: ServerResponse, status: number, body: string): void {
  const length = Buffer.byteLength(body);
  response.writeHead(status, { "content-type": "application/json", "content-length": length }).end(body);
}

function readBody(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    request.on("data", (bytes: Buffer) => pieces.push(bytes));
    request.on("end", () => resolve(Buffer.concat(pieces).toString()));
    request.on("error", reject);
  });
}

/** Sends a ready buffer as often as it takes, or throws a body away. */
async function answerContents(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === "PUT") {
    request.resume().on("end", () => respond(response, 200, ""));
    return;
  }
  const size = Number(new URL(request.url ?? "", "http://127.0.0.1").searchParams.get("byte_size"));
  response.writeHead(200, { "content-type": "application/octet-stream", "content-length": size });
  for (let left = size; left > 0; left -= pieceBytes) {
    const sent = response.write(left < pieceBytes ? piece.subarray(0, left) : piece);
    if (!sent) await new Promise((resolve) => response.once("drain", resolve));
  }
  response.end();
}
