import type { Bench, Case, Row } from "../case.js";
import { loadContender } from "../load-contender.js";
import { exportMemory } from "../memory.js";
import { fill } from "../processes/fill.js";
import { ServerProcess } from "../processes/server.js";
import { regionName } from "../servers/arguments.js";
import { grpcPair, grpcStatus } from "../steps.js";

const most = 32;

/** Pairs and status of one over gRPC, beside grpc-js with the same messages. */
export const grpc: Case = {
  name: "grpc",
  title: "register + unregister and status of one over gRPC",

  async *rows(bench: Bench): AsyncGenerator<Row> {
    // The first allocation is of the regions whose status is asked for; a pair on it would open nothing.
    await using memory = await exportMemory(bench, 1 + most);
    await using product = await ServerProcess.product(bench);
    await using bare = await ServerProcess.baseline(bench, "grpc-js");
    await using bareNative = await ServerProcess.baseline(bench, "grpc-js", ["--store=native"]);
    await fill(bench, product, most, memory.bodies.slice(0, 1));

    for (const calls of [1, most]) {
      const lanes = Array.from({ length: calls }, (_, lane) => [grpcStatus(regionName(lane))]);
      const load = { protocol: "grpc", lanes } as const;
      yield {
        name: `status of one, outstanding: ${calls}`,
        unit: "calls/s",
        better: "more",
        contenders: [
          loadContender(bench, "cudashm", product, load),
          loadContender(bench, "grpc-js", bare, load),
        ],
        targets: [{ against: "grpc-js", atLeast: 0.95 }],
      };
    }
    for (const calls of [1, most]) {
      const lanes = Array.from({ length: calls }, (_, lane) => grpcPair(`pair-${lane}`, memory, 1 + lane));
      const load = { protocol: "grpc", lanes, requestsEach: 2 } as const;
      yield {
        name: `register + unregister, outstanding: ${calls}`,
        unit: "pairs/s",
        better: "more",
        contenders: [
          loadContender(bench, "cudashm", product, load),
          loadContender(bench, "grpc-js", bare, load),
          loadContender(bench, "grpc-js + native open and close", bareNative, load),
        ],
        targets: [{ against: "grpc-js + native open and close", atLeast: 0.85 }],
      };
    }
  },
};
