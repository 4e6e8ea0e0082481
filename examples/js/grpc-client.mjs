// Registers another process's GPU memory over gRPC, with grpc-js and the .proto file, as Triton's example does.
//
//   npx cudashm allocate --bytes 4096 | tee region.json   in one terminal: allocates, and holds until Ctrl-C
//   node examples/js/grpc-client.mjs region.json          in another one
//
// The service has to run; its gRPC address may follow as the second argument.
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

const [file = "region.json", address = "127.0.0.1:8001"] = process.argv.slice(2);
const { raw_handle, device_id, byte_size } = JSON.parse(await readFile(file, "utf8"));

// keepCase: fields are named as in the file. longs: 64-bit numbers arrive as strings, every digit kept.
// defaults: a device_id of 0 and a map of no regions are there, not left out.
const proto = fileURLToPath(new URL("../../proto/inference/grpc_service.proto", import.meta.url));
const { inference } = grpc.loadPackageDefinition(
  loadSync(proto, { keepCase: true, longs: String, defaults: true }),
);
const client = new inference.GRPCInferenceService(address, grpc.credentials.createInsecure());
const register = promisify(client.CudaSharedMemoryRegister).bind(client);
const status = promisify(client.CudaSharedMemoryStatus).bind(client);
const unregister = promisify(client.CudaSharedMemoryUnregister).bind(client);

const name = "example/grpc";
const request = { name, raw_handle: Buffer.from(raw_handle.b64, "base64"), device_id, byte_size };
await register(request, { deadline: Date.now() + 10_000 });
try {
  const { regions } = await status({ name });
  console.log(`registered '${name}': ${regions[name].byte_size} bytes on device ${regions[name].device_id}`);

  await register(request).catch(({ code, details }) => {
    console.log(`refused: ${grpc.status[code]}: ${details}`);
  });
} finally {
  // With an empty name this unregisters every region there is.
  await unregister({ name });
  console.log(`regions left: ${Object.keys((await status({})).regions).length}`);
  client.close();
}
