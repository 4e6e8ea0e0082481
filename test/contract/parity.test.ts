import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { ExporterProcess } from "../../src/cli/exporter-process.js";
import type { ServiceProcess } from "../../src/cli/service-process.js";
import { startExporter, startService } from "../helpers/cudashm.js";
import { createGrpcFaceClient, createHttpFaceClient, type FaceClient } from "./face-client.js";
import { type ExportedMemory, parityCases } from "./parity-cases.js";

let service: ServiceProcess;
let clients: Record<FaceClient["protocol"], FaceClient>;
const exporters = new Map<bigint, Promise<ExporterProcess>>();

beforeAll(async () => {
  service = await startService();
  clients = clientsOf(service);
});

afterEach(async () => {
  expect(await clients.grpc.unregister()).toMatchObject({ code: "OK" });
});

afterAll(async () => {
  clients.grpc.close();
  for (const exporter of exporters.values()) await (await exporter)[Symbol.asyncDispose]();
  expect(await service.stop()).toEqual({ code: 0, signal: null });
});

function clientsOf({ httpUrl, grpcAddress }: ServiceProcess): typeof clients {
  return {
    http: createHttpFaceClient(Number(new URL(httpUrl).port)),
    grpc: createGrpcFaceClient(Number(grpcAddress.split(":").at(-1))),
  };
}

async function allocate(byteSize: bigint): Promise<ExportedMemory> {
  let starting = exporters.get(byteSize);
  if (starting === undefined) {
    starting = startExporter([`--bytes=${byteSize}`]);
    exporters.set(byteSize, starting);
  }
  return { handle: handleOf(await starting), byteSize };
}

async function staleHandle(): Promise<Uint8Array> {
  const exporter = await startExporter();
  await exporter.process.kill("SIGKILL");
  return handleOf(exporter);
}

function handleOf(exporter: ExporterProcess): Uint8Array {
  return Buffer.from(exporter.body.raw_handle.b64, "base64");
}

describe.each(["http", "grpc"] as const)("over %s, the service", (protocol) => {
  test.each(parityCases.map((parityCase) => [parityCase.title, parityCase] as const))(
    "%s",
    async (_, { run }) => {
      const other = clients[protocol === "http" ? "grpc" : "http"];
      await run({ face: clients[protocol], other, allocate, staleHandle });
    },
  );
});

describe.each(["http", "grpc"] as const)("over %s, a service set up otherwise", (protocol) => {
  async function withService(
    args: readonly string[],
    variables: Record<string, string>,
    run: (face: FaceClient) => Promise<void>,
  ): Promise<void> {
    const started = await startService(args, variables);
    const faces = clientsOf(started);
    try {
      await run(faces[protocol]);
    } finally {
      faces.grpc.close();
      await started.stop();
    }
  }

  test("refuses every register while client shared memory is disabled, and answers the rest", async () => {
    const { handle } = await allocate(4096n);
    await withService(["--allow-client-shm=false"], {}, async (face) => {
      expect(await face.register({ name: "r", handle, byteSize: 64n })).toEqual({
        code: "UNIMPLEMENTED",
        text: "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.",
        regions: [],
      });
      expect(await face.status()).toEqual({ code: "OK", text: "", regions: [] });
      expect(await face.unregister("r")).toEqual({ code: "OK", text: "", regions: [] });
    });
  });

  test("keeps a region whose close the driver refuses, and closes it the next time", async () => {
    const { handle } = await allocate(4096n);
    await withService([], { CUDASHM_EMULATED_FAULTS: "cuIpcCloseMemHandle@1=1" }, async (face) => {
      await face.register({ name: "r", handle, byteSize: 64n });
      const failed = await face.unregister("r");
      expect(failed.code).toBe("INTERNAL");
      expect(failed.text).toMatch(/^failed to close CUDA IPC handle: CUDA_ERROR_INVALID_VALUE \(1\)/);
      expect((await face.status()).regions.map((region) => region.name)).toEqual(["r"]);
      expect(await face.register({ name: "r", handle, byteSize: 64n })).toMatchObject({
        code: "ALREADY_EXISTS",
      });
      expect(await face.unregister("r")).toMatchObject({ code: "OK" });
      expect((await face.status()).regions).toEqual([]);
    });
  });

  test("unregisters all it can and names the regions that it could not", async () => {
    const one = await allocate(4096n);
    const two = await allocate(8192n);
    await withService([], { CUDASHM_EMULATED_FAULTS: "cuIpcCloseMemHandle@1=1" }, async (face) => {
      await face.register({ name: "a", handle: one.handle, byteSize: 64n });
      await face.register({ name: "b", handle: two.handle, byteSize: 64n });
      const failed = await face.unregister();
      expect(failed.code).toBe("INTERNAL");
      const left = (await face.status()).regions.map((region) => region.name);
      expect(left).toHaveLength(1);
      expect(failed.text).toBe(`Failed to unregister the following cuda shared memory regions: ${left[0]} ,`);
      expect(await face.unregister()).toMatchObject({ code: "OK" });
    });
  });
});

test("over grpc, the service refuses device -1, which HTTP cannot say", async () => {
  const { handle } = await allocate(4096n);
  expect(await clients.grpc.register({ name: "r", handle, deviceId: -1n, byteSize: 64n })).toMatchObject({
    code: "INVALID_ARGUMENT",
    text: expect.stringMatching(/^failed to register shared memory region 'r': invalid args: .*-1/),
  });
});
