// An exporter from beginning to end: allocates memory on the emulated driver, registers it with a service that may run
// in another container, shows that both see the same bytes, unregisters, and frees.
//
//   node examples/js/exporter.mjs http://127.0.0.1:8000
//
// The service needs --allow-contents, and has to run as the same user in the same PID namespace.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { createCudaSharedMemoryClient } from "cudashm/client";

const [baseUrl = "http://127.0.0.1:8000"] = process.argv.slice(2);
const client = createCudaSharedMemoryClient({ baseUrl });
const name = `exporter-${process.pid}`;
const contents = `${baseUrl}/v1/regions/${name}/contents`;

const cudashm = fileURLToPath(new URL("main.js", import.meta.resolve("cudashm")));
const args = [cudashm, "allocate", "--driver=emulated", "--fill=written by the exporter. ", "--interactive"];
const exporter = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
const ended = once(exporter, "close");
const lines = createInterface({ input: exporter.stdout })[Symbol.asyncIterator]();
const nextLine = async () => JSON.parse((await lines.next()).value);

// What it prints first is the body of a register.
const { raw_handle, device_id, byte_size } = await nextLine();
await client.register(name, { rawHandle: raw_handle.b64, deviceId: device_id, byteSize: byte_size });
try {
  console.log(`registered ${name}: ${byte_size} bytes on device ${device_id}`);

  const seen = await read(24);
  console.log(`the service reads: "${seen}"`);
  if (seen !== "written by the exporter.") throw new Error("the service does not see the exporter's bytes");

  const written = "written by the service!!";
  const answer = await fetch(contents, { method: "PUT", body: written });
  if (!answer.ok) throw new Error(`write refused: ${await answer.text()}`);
  exporter.stdin.write(`${JSON.stringify({ op: "read", offset: 0, byte_size: written.length })}\n`);
  const bytes = Buffer.from((await nextLine()).b64, "base64").toString();
  console.log(`the exporter reads: "${bytes}"`);
  if (bytes !== written) throw new Error("the exporter does not see the service's bytes");
} finally {
  await client.unregister(name);
  exporter.stdin.end();
}
const [code] = await ended;
console.log(`unregistered and freed; regions left: ${(await client.statuses()).length}`);
process.exitCode = code;

async function read(byteSize) {
  const answer = await fetch(`${contents}?offset=0&byte_size=${byteSize}`);
  if (!answer.ok) throw new Error(`read refused: ${await answer.text()}`);
  return await answer.text();
}
