// Registers another process's GPU memory over HTTP, with the client that comes with the package.
//
//   npx cudashm allocate --bytes 4096 | tee region.json   in one terminal: allocates, and holds until Ctrl-C
//   node examples/js/typed-client.mjs region.json         in another one
//
// The service has to run; its URL may follow as the second argument.
import { readFile } from "node:fs/promises";
import { CudaSharedMemoryError, createCudaSharedMemoryClient } from "cudashm/client";

const [file = "region.json", baseUrl = "http://127.0.0.1:8000"] = process.argv.slice(2);
const { raw_handle, device_id, byte_size } = JSON.parse(await readFile(file, "utf8"));
const region = { rawHandle: raw_handle.b64, deviceId: device_id, byteSize: byte_size };

const client = createCudaSharedMemoryClient({ baseUrl });
const name = "example/typed client"; // any name: the client encodes it

// Opening memory on a GPU that was idle takes a while; this gives up after ten seconds.
await client.register(name, region, { signal: AbortSignal.timeout(10_000) });
try {
  const { deviceId, byteSize } = await client.status(name);
  console.log(`registered '${name}': ${byteSize} bytes on device ${deviceId}`);

  // A refusal says what was wrong, and its code is gRPC's name for it.
  await client.register(name, region).catch((error) => {
    if (!(error instanceof CudaSharedMemoryError)) throw error;
    console.log(`refused: ${error.code}: ${error.message}`);
  });
} finally {
  // The service keeps the memory mapped, also when its owner has gone, until somebody does this.
  await client.unregister(name);
}
console.log(`regions left: ${(await client.statuses()).length}`);
