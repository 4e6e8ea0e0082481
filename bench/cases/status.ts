import type { Bench, Case, Row } from "../case.js";
import type { GrpcStep, HttpStep, LoadResult } from "../load/jobs.js";
import { type Load, loadContender } from "../load-contender.js";
import { type ExportedMemory, exportMemory } from "../memory.js";
import { fill } from "../processes/fill.js";
import { ServerProcess } from "../processes/server.js";
import { grpcPair, grpcStatus, httpPair, httpStatus } from "../steps.js";

/** What differs between the faces. */
interface Face {
  readonly protocol: "http" | "grpc";
  readonly baseline: { readonly name: string; readonly script: "node-http" | "grpc-js" };
  status(): HttpStep | GrpcStep;
  pair(name: string, memory: ExportedMemory): readonly (HttpStep | GrpcStep)[];
}

const httpFace: Face = {
  protocol: "http",
  baseline: { name: "node:http with JSON.stringify", script: "node-http" },
  status: () => httpStatus(),
  pair: (name, memory) => httpPair(name, memory, 0),
};

const grpcFace: Face = {
  protocol: "grpc",
  baseline: { name: "grpc-js with the same encoding", script: "grpc-js" },
  status: () => grpcStatus(),
  pair: (name, memory) => grpcPair(name, memory, 0),
};

/** The status of many regions, and how long it holds the event loop. */
export const statusHttp = statusCase("status-http", "status of all over HTTP", httpFace);
export const statusGrpc = statusCase("status-grpc", "status of all over gRPC", grpcFace);

function statusCase(name: string, title: string, face: Face): Case {
  return { name, title, rows: (bench) => rows(bench, face) };
}

async function* rows(bench: Bench, face: Face): AsyncGenerator<Row> {
  for (const count of bench.isTiny ? [10] : [1_000, 10_000, 100_000]) {
    await using memory = await exportMemory(bench, 1);
    await using product = await ServerProcess.product(bench);
    const args = [`--regions=${count}`];
    await using baseline = await ServerProcess.baseline(bench, face.baseline.script, args);
    bench.progress(`registering ${count} regions`);
    await fill(bench, product, count, memory.bodies);

    const row = (what: string, steps: Load["lanes"][number]): Row => {
      const load: Load = {
        protocol: face.protocol,
        lanes: [steps],
        value: statusesASecond,
        watchesLoop: true,
      };
      return {
        name: `${count} regions, ${what}`,
        unit: "statuses/s",
        better: "more",
        contenders: [
          loadContender(bench, "cudashm", product, load),
          loadContender(bench, face.baseline.name, baseline, load),
        ],
        targets: [
          { against: face.baseline.name, atLeast: 0.8 },
          ...(count === 100_000 ? [{ figure: "loop max ms", below: 20, of: "max" } as const] : []),
        ],
      };
    };
    yield row("nothing changed", [face.status()]);
    const [register, unregister] = face.pair("another", memory).map((step) => ({ ...step, counts: false }));
    if (register === undefined || unregister === undefined) throw new RangeError("a pair has two steps");
    yield row("each after a change", [register, face.status(), unregister, face.status()]);
  }
}

function statusesASecond({ requests, waitedSeconds }: LoadResult): number {
  return requests / waitedSeconds;
}
