import { expect } from "vitest";
import { DoomedService } from "./doomed-service.js";
import { type Allocation, ExporterHost, patternOf } from "./exporter-host.js";
import { GrpcCaller } from "./grpc-caller.js";
import { HttpCaller } from "./http-caller.js";
import type { Fact } from "./ledger.js";
import type { Caller } from "./outcome.js";
import type { SeededRandom } from "./seeded-random.js";
import { Watcher } from "./watcher.js";

export const anonymous: Caller = { token: null, session: null };
let names = 0;

/** A region of a name that no other has, on a whole allocation. */
export function regionOn(allocation: Allocation, isExporterNamed: boolean): Fact {
  return {
    name: `region ${names++}`,
    allocation,
    byteSize: allocation.byteSize,
    offset: 0,
    owner: "anonymous",
    session: null,
    labels: {},
    leaseSeconds: null,
    isExporterNamed,
    generation: null,
  };
}

/** An exporter with so many allocations. */
export async function startHost(program: string, random: SeededRandom, count: number, byteSize = 4096) {
  const host = await ExporterHost.start(program);
  const allocations: Allocation[] = [];
  while (allocations.length < count) {
    allocations.push(await host.allocate(allocations.length % 2, byteSize, random.below(256)));
  }
  return { host, allocations };
}

/** A service that is ready, and what its clients have. */
export async function startRunning(stateFile: string, args: readonly string[]) {
  const service = new DoomedService();
  service.start({ stateFile, args });
  await service.ready();
  const httpAddress = await service.address("HTTPService");
  const http = new HttpCaller(httpAddress);
  const grpcAddress = await service.address("GRPCInferenceService");
  const grpc = new GrpcCaller(grpcAddress);
  const watcher = await Watcher.open(grpcAddress);
  return {
    service,
    httpAddress,
    grpcAddress,
    watcher,
    faces: [http, grpc],
    region: (name: string) =>
      http.get<{ state: string; generation: number }>(`/v1/regions/${encodeURIComponent(name)}`, anonymous),
    /** What the region's memory holds is what its exporter wrote. */
    async expectReadable({ name, allocation }: Fact, reader = anonymous) {
      const contents = await http.bytes(`/v1/regions/${encodeURIComponent(name)}/contents`, reader);
      expect(contents.equals(patternOf(allocation, 0, allocation.byteSize)), `contents of ${name}`).toBe(
        true,
      );
    },
    async [Symbol.asyncDispose]() {
      watcher[Symbol.dispose]();
      grpc[Symbol.dispose]();
      http[Symbol.dispose]();
      await service[Symbol.asyncDispose]();
    },
  };
}
