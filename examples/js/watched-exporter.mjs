// What becomes of a region whose exporter dies: registers the memory of another process with a lease and with what
// tells that process from all others, keeps the lease alive, watches, and kills the process.
//
//   node examples/js/watched-exporter.mjs http://127.0.0.1:8000
//
// The service has to run on this machine, in the same PID namespace, with the emulated driver or on the same GPU.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, stat } from "node:fs/promises";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { createCudaSharedMemoryClient } from "cudashm/client";

const [baseUrl = "http://127.0.0.1:8000"] = process.argv.slice(2);
const client = createCudaSharedMemoryClient({ baseUrl });
const name = `watched-${process.pid}`;

const cudashm = fileURLToPath(new URL("main.js", import.meta.resolve("cudashm")));
const child = spawn(process.execPath, [cudashm, "allocate"], { stdio: ["pipe", "pipe", "ignore"] });
const ended = once(child, "close");
// What it prints is the body of a register by Triton's API.
const [line] = await once(createInterface({ input: child.stdout }), "line");
const { raw_handle, device_id, byte_size } = JSON.parse(line);

// The first event says that the watch has begun, so that none of those below is missed.
const events = client.events({ region: name });
await events.next();

const region = await client.registerRegion(name, {
  rawHandle: raw_handle.b64,
  deviceId: device_id,
  byteSize: byte_size,
  leaseMs: 30_000,
  exporter: await exporterOf(child.pid),
});
console.log(`registered ${region.byteSize} bytes for ${region.leaseMs / 1000} s at a time`);

const done = new AbortController();
const kept = client.keepAlive(name, {
  signal: done.signal,
  onError: (error) => console.error(`not renewed, will be tried again: ${error.message}`),
});

child.kill("SIGKILL");
for await (const event of events) {
  if (event.type !== "change") continue;
  console.log(`${event.kind}: ${event.reason}`);
  if (event.kind === "orphaned") {
    // It would go by itself after the service's --orphan-grace-secs.
    done.abort();
    await kept;
    const { closed } = await client.unregisterRegion(name, { waitMs: 5000, generation: region.generation });
    console.log(`the memory is closed: ${closed}`);
  }
  if (event.kind === "unregistered") break;
}
await ended;

async function exporterOf(pid) {
  const [status, bootId, { ino }] = await Promise.all([
    readFile(`/proc/${pid}/stat`, "latin1"),
    readFile("/proc/sys/kernel/random/boot_id", "latin1"),
    stat(`/proc/${pid}/ns/pid`, { bigint: true }),
  ]);
  // The second field is a name that may have blanks and brackets in it; the start time is the 22nd.
  const fields = status.slice(status.lastIndexOf(")") + 2).split(" ");
  return { pid, startTime: BigInt(fields[19]), bootId: bootId.trim(), pidNamespace: ino };
}
