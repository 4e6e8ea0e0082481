import { expect, test } from "vitest";
import { GRPCInferenceServiceService } from "../../src/grpc/gen/inference/grpc_service.js";
import { CertificateFolder } from "../helpers/certificates.js";
import { testDriver } from "../helpers/cudashm.js";
import { dropConnection, grpcBeginnings, httpBeginnings, tlsBeginnings } from "./dropped-connection.js";
import { GrpcFaceClient } from "./grpc-face-client.js";
import { HttpFaceClient } from "./http-face-client.js";
import { LoadedService } from "./loaded-service.js";
import { PeerProxy } from "./peer-proxy.js";
import { stressPlan } from "./plan.js";
import { memoryVariables, SharedMemories } from "./shared-memory.js";

const atATime = 250;

/** Less than 8 KiB a connection. What a process grows by at first, whatever it does, is most of it. */
const mostGrowthBytes = 80 * 1024 * 1024;

const plan = stressPlan({ seed: 0, seconds: 1 });

/** How often all of it is done: once, or for as long as is asked for on a machine that is slow. */
const times = Math.ceil(plan.seconds / 20);

/** Opens and drops so many connections, some at a time, each after one of the beginnings. */
async function dropAll(address: string, beginnings: readonly Buffer[], count: number): Promise<void> {
  let next = 0;
  const one = async (): Promise<void> => {
    for (let number = next++; number < count; number = next++) {
      const bytes = beginnings[number % beginnings.length] ?? Buffer.alloc(0);
      await dropConnection(address, bytes, number % 4 === 3);
    }
  };
  await Promise.all(Array.from({ length: atATime }, one));
}

test.skipIf(testDriver !== "emulated")(
  "10,000 connections, dropped at every point of a register over either face, leave nothing behind",
  { timeout: plan.timeout },
  async () => {
    await using memories = await SharedMemories.create(1, 64 * 1024);
    const [memory] = memories.all;
    if (memory === undefined) throw new Error("there is no memory");
    await using service = await LoadedService.start(["--context-linger-secs=0"], memoryVariables);
    const { handle, deviceId, byteSize } = memory;
    const http = httpBeginnings("dropped over HTTP", {
      raw_handle: { b64: handle.toString("base64") },
      device_id: deviceId,
      byte_size: byteSize,
    });
    const message = GRPCInferenceServiceService.cudaSharedMemoryRegister.requestSerialize({
      name: "dropped over gRPC",
      rawHandle: handle,
      deviceId: BigInt(deviceId),
      byteSize: BigInt(byteSize),
    });
    const grpc = grpcBeginnings(message);
    const both = (count: number) =>
      Promise.all([dropAll(service.httpAddress, http, count), dropAll(service.grpcAddress, grpc, count)]);

    await both(1_000);
    await unregisterAll(service);
    const rest = await service.atRest();
    const { residentBytes } = service.footprint();
    for (let time = 0; time < times; time++) {
      await both(5_000);
      await unregisterAll(service);
      await service.untilQuiet(rest);
    }
    expect(service.footprint().residentBytes - residentBytes).toBeLessThan(mostGrowthBytes);
    expect(service.calls.openHandles()).toBe(0);
    expect(service.warnings.filter(({ level }) => Number(level) >= 50)).toEqual([]);
    expect(await service.stop()).toEqual({ code: 0, signal: null });
    expect(service.errorText).toBe("");
  },
);

test.skipIf(testDriver !== "emulated")(
  "connections dropped in the middle of a TLS handshake leave nothing behind",
  { timeout: plan.timeout },
  async () => {
    await using folder = await CertificateFolder.create();
    const { certificate, key } = await folder.make("server", await folder.makeRoot("root"));
    const args = ["http", "grpc"].flatMap((face) => [
      `--${face}-use-ssl`,
      `--${face}-server-cert=${certificate}`,
      `--${face}-server-key=${key}`,
    ]);
    await using service = await LoadedService.start(args, memoryVariables);
    const both = (count: number) =>
      Promise.all(
        [service.httpAddress, service.grpcAddress].map((address) => dropAll(address, tlsBeginnings(), count)),
      );
    await both(250);
    const rest = await service.atRest();
    const { residentBytes } = service.footprint();
    for (let time = 0; time < times; time++) {
      await both(500);
      await service.untilQuiet(rest);
    }
    expect(service.footprint().residentBytes - residentBytes).toBeLessThan(mostGrowthBytes);
    expect(service.warnings.filter(({ level }) => Number(level) >= 50)).toEqual([]);
    expect(await service.stop()).toEqual({ code: 0, signal: null });
  },
);

/** By each face, so that both are seen to answer still. */
async function unregisterAll(service: LoadedService): Promise<void> {
  await using line = await PeerProxy.open(service.grpcAddress);
  using grpc = new GrpcFaceClient(line);
  using http = new HttpFaceClient(service.httpAddress);
  for (const face of [grpc, http]) {
    const { code } = await face.call({ op: "unregisterAll" }, null, null);
    expect(code).toBe("OK");
  }
}
