import { SeededRandom } from "../kill/seeded-random.js";
import type { FaceClient } from "./answer.js";
import { GrpcFaceClient } from "./grpc-face-client.js";
import { HttpFaceClient } from "./http-face-client.js";
import type { LoadedService } from "./loaded-service.js";
import { MixedClient, type Outcome } from "./mixed-client.js";
import { PeerProxy } from "./peer-proxy.js";
import type { SharedMemory } from "./shared-memory.js";

export interface MixedLoadOptions {
  readonly service: LoadedService;
  readonly memories: readonly SharedMemory[];
  readonly names: readonly string[];
  readonly clients: number;
  readonly seed: number;
  readonly seconds: number;
  readonly onOutcome: (outcome: Outcome) => void;
}

/** Clients over gRPC that share a connection, and lose it together. */
const clientsALine = 4;
const disturbedPercent = 15;

/** Has clients make mixed calls, half of them over each face, for some seconds. Resolves once all of them are gone. */
export async function runMixedLoad(options: MixedLoadOptions): Promise<void> {
  const { service, memories, names, clients, seed, seconds, onOutcome } = options;
  const overGrpc = Math.floor(clients / 2);
  const lines = await Promise.all(
    Array.from({ length: Math.ceil(overGrpc / clientsALine) }, () => PeerProxy.open(service.grpcAddress)),
  );
  const end = performance.now() + seconds * 1000;
  const run = async (index: number): Promise<void> => {
    const random = new SeededRandom(seed * 1009 + index);
    const line = lines[index % lines.length] as PeerProxy;
    using face: FaceClient =
      index < overGrpc ? new GrpcFaceClient(line) : new HttpFaceClient(service.httpAddress);
    const sessionAddress = random.percent(25) ? line.address : null;
    await using client = new MixedClient({ random, face, sessionAddress, names, memories, disturbedPercent });
    while (performance.now() < end) onOutcome(await client.step());
  };
  try {
    await Promise.all(Array.from({ length: clients }, (_, index) => run(index)));
  } finally {
    await Promise.all(lines.map((line) => line[Symbol.asyncDispose]()));
  }
}
