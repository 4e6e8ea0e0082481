import type { Bench, Contender, Sample } from "./case.js";
import type { GrpcStep, HttpStep, LoadJob, LoadResult } from "./load/jobs.js";
import type { ServerProcess } from "./processes/server.js";

/** What is sent to a server, and what is made of the answer. */
export interface Load {
  readonly protocol: "http" | "grpc";
  readonly lanes: readonly (readonly (HttpStep | GrpcStep)[])[];
  /** The row's value from how the load went; requests a second unless given. */
  readonly value?: (result: LoadResult) => number;
  /** Requests that make one of what the row counts; 1 unless given. */
  readonly requestsEach?: number;
  /** Whether the server's event loop is watched. */
  readonly watchesLoop?: boolean;
  /** Whether p50 and p99 of a request say something. */
  readonly showsLatency?: boolean;
}

type Target = Pick<ServerProcess, "pid" | "httpPort" | "grpcPort"> &
  Partial<Pick<ServerProcess, "watchLoop" | "loopDelays">>;

/** A server under load from the load process. */
export function loadContender(bench: Bench, name: string, server: Target, load: Load): Contender {
  const { protocol, lanes, requestsEach = 1, watchesLoop = false, showsLatency = true } = load;
  const value = load.value ?? (({ requests, elapsedSeconds }) => requests / elapsedSeconds / requestsEach);
  return {
    name,
    async measure(): Promise<Sample> {
      if (watchesLoop) await server.watchLoop?.();
      const job: LoadJob<HttpStep | GrpcStep> = {
        op: protocol,
        port: protocol === "http" ? server.httpPort : server.grpcPort,
        lanes,
        seconds: bench.seconds,
        serverPid: server.pid,
      };
      const result = await bench.load.ask<LoadResult>(job);
      const { requests, elapsedSeconds, p50Micros, p99Micros, serverCpuMicros, loadCpuMicros } = result;
      return {
        value: value(result),
        cpuMicros: serverCpuMicros === null ? null : (serverCpuMicros / requests) * requestsEach,
        loadCpu: loadCpuMicros / 1e6 / elapsedSeconds,
        more: {
          ...(showsLatency && { "p50 us": p50Micros, "p99 us": p99Micros }),
          ...(watchesLoop && (await server.loopDelays?.())),
        },
      };
    },
  };
}
