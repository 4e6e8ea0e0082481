import type { Answer, FaceClient, Memory, Request } from "./answer.js";
import { GrpcFaceClient } from "./grpc-face-client.js";
import { HttpFaceClient } from "./http-face-client.js";
import type { LoadedService } from "./loaded-service.js";
import { PeerProxy } from "./peer-proxy.js";

const clientsOfFace = 3;

/** How long each call of ordinary clients took, in milliseconds: of each client five calls, `times` times. */
export async function probe(
  service: LoadedService,
  memory: Memory,
  times: number,
): Promise<readonly number[]> {
  const durations: number[] = [];
  await using line = await PeerProxy.open(service.grpcAddress);
  const timed = async (face: FaceClient, request: Request): Promise<void> => {
    const begun = performance.now();
    const { code, text }: Answer = await face.call(request, null, null);
    durations.push(performance.now() - begun);
    if (code !== "OK") throw new Error(`${request.op} was answered ${code}: ${text}`);
  };
  const run = async (face: FaceClient, name: string): Promise<void> => {
    // Once, so that no connection is made while the time is taken.
    await face.call({ op: "server" }, null, null);
    for (let time = 0; time < times; time++) {
      await timed(face, { op: "registerAsTriton", name, memory });
      await timed(face, { op: "status", name });
      await timed(face, { op: "checksum", name });
      await timed(face, { op: "unregisterAsTriton", name });
      await timed(face, { op: "statusAll" });
    }
    face[Symbol.dispose]();
  };
  await Promise.all(
    Array.from({ length: clientsOfFace }, (_, index) => [
      run(new HttpFaceClient(service.httpAddress), `http ${index}`),
      run(new GrpcFaceClient(line), `grpc ${index}`),
    ]).flat(),
  );
  return durations;
}

/** The value that so many in a hundred do not exceed. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? Number.NaN;
}
