import type { Bench, Case, Row, Skipped } from "../case.js";
import type { GrpcStep, LoadJob } from "../load/jobs.js";
import { loadContender } from "../load-contender.js";
import { exportMemory } from "../memory.js";
import { buildCppServer, CppServer, missingPackages } from "../processes/cpp-server.js";
import { fill } from "../processes/fill.js";
import { ServerProcess } from "../processes/server.js";
import { regionName } from "../servers/arguments.js";
import { grpcPair, grpcStatus } from "../steps.js";

const most = 32;
const cpp = "C++ gRPC, mutex and map";

/** The same calls beside a C++ server that does as Triton does: what the language and its gRPC library cost. */
export const grpcCpp: Case = {
  name: "grpc-cpp",
  title: "the gRPC calls beside a C++ gRPC server",

  async *rows(bench: Bench): AsyncGenerator<Row | Skipped> {
    const missing = missingPackages();
    if (missing.length > 0) {
      const skipped = `a C++ gRPC server cannot be built here, what is missing: ${missing.join(", ")} (npm run setup:clients)`;
      yield { name: "status of one, register + unregister", skipped };
      return;
    }
    bench.progress("building the C++ server");
    await buildCppServer();
    // The regions whose status is asked for, and those that come and go.
    await using memory = await exportMemory(bench, 2 * most);
    await using product = await ServerProcess.product(bench);
    await using server = await CppServer.start(bench);
    const lanesOf = (calls: number) => Array.from({ length: calls }, (_, lane) => lane);
    await fill(bench, product, most, memory.bodies.slice(0, most));
    const registers: LoadJob<GrpcStep> = {
      op: "grpc",
      port: server.grpcPort,
      lanes: [lanesOf(most).flatMap((lane) => grpcPair(regionName(lane), memory, lane).slice(0, 1))],
      seconds: 0,
      serverPid: server.pid,
    };
    await bench.load.ask(registers);

    for (const calls of [1, most]) {
      const lanes = lanesOf(calls).map((lane) => [grpcStatus(regionName(lane))]);
      const load = { protocol: "grpc", lanes } as const;
      yield {
        name: `status of one, outstanding: ${calls}`,
        unit: "calls/s",
        better: "more",
        contenders: [loadContender(bench, "cudashm", product, load), loadContender(bench, cpp, server, load)],
      };
    }
    for (const calls of [1, most]) {
      const lanes = lanesOf(calls).map((lane) => grpcPair(`pair-${lane}`, memory, most + lane));
      const load = { protocol: "grpc", lanes, requestsEach: 2 } as const;
      yield {
        name: `register + unregister, outstanding: ${calls}`,
        unit: "pairs/s",
        better: "more",
        contenders: [loadContender(bench, "cudashm", product, load), loadContender(bench, cpp, server, load)],
      };
    }
  },
};
