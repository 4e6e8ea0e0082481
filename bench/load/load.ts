// The load generator: a process that sends what the runner asks it to, and tells how that went.
import { answerQuestions } from "../processes/answer-questions.js";
import { cpuMicrosOf } from "../processes/cpu-time.js";
import { regionName } from "../servers/arguments.js";
import { encodeHttp, HttpConnection, type HttpRequest } from "./http-connection.js";
import { type GrpcRequest, Http2Connection } from "./http2-connection.js";
import { endStream, frame, frameType, grpcMessage, requestHeaders } from "./http2-frames.js";
import type { FillJob, GrpcStep, HttpStep, LoadJob, LoadResult } from "./jobs.js";
import { drive, type Lane, repeating, type Timing } from "./lanes.js";

const fillLanes = 32;

answerQuestions({
  async http({ port, lanes, seconds, serverPid }: LoadJob<HttpStep>): Promise<LoadResult> {
    const requests = lanes.map((steps) => steps.map(httpRequest));
    using connections = await openAll(lanes.length, () => HttpConnection.open(port));
    return await measured(serverPid, () => {
      const running = requests.map((steps) => repeating(steps, seconds));
      return drive(running, (lane) => connections.at(lane));
    });
  },

  async grpc({ port, lanes, seconds, serverPid }: LoadJob<GrpcStep>): Promise<LoadResult> {
    const requests = lanes.map((steps) => steps.map(grpcRequest));
    using connection = await Http2Connection.open(port);
    return await measured(serverPid, () => {
      const running = requests.map((steps) => repeating(steps, seconds));
      return drive(running, () => connection);
    });
  },

  async fill({ port, first, count, bodies }: FillJob): Promise<Timing> {
    using connections = await openAll(fillLanes, () => HttpConnection.open(port));
    let next = first;
    const lane: Lane<HttpRequest> = {
      next() {
        if (next >= first + count) return undefined;
        const path = `/v2/cudasharedmemory/region/${regionName(next)}/register`;
        const bytes = encodeHttp("POST", path, bodies[next % bodies.length]);
        next++;
        return { bytes, counts: true };
      },
    };
    return await drive(
      Array.from({ length: fillLanes }, () => lane),
      (at) => connections.at(at),
    );
  },
});

async function measured(serverPid: number, work: () => Promise<Timing>): Promise<LoadResult> {
  const server = cpuMicrosOf(serverPid);
  const own = process.cpuUsage();
  const timing = await work();
  const { user, system } = process.cpuUsage(own);
  const now = cpuMicrosOf(serverPid);
  return {
    ...timing,
    serverCpuMicros: server === null || now === null ? null : now - server,
    loadCpuMicros: user + system,
  };
}

async function openAll<One extends Disposable>(count: number, open: () => Promise<One>) {
  const all = await Promise.all(Array.from({ length: count }, open));
  return {
    at: (index: number) => all[index] as One,
    [Symbol.dispose]() {
      for (const one of all) one[Symbol.dispose]();
    },
  };
}

function httpRequest({ method, path, body, bodyBytes, counts = true }: HttpStep): HttpRequest {
  return { bytes: encodeHttp(method, path, body ?? Buffer.alloc(bodyBytes ?? 0, 1)), counts };
}

function grpcRequest({ path, messages, isStream = false, counts = true }: GrpcStep): GrpcRequest {
  const encoded = messages.flatMap(({ b64, times }) =>
    Array<Buffer>(times).fill(grpcMessage(Buffer.from(b64, "base64"))),
  );
  const data = isStream ? encoded : frame(frameType.data, endStream, 0, Buffer.concat(encoded));
  return { headers: requestHeaders(path), data, counts };
}
