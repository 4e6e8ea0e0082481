import {
  ReadContentsRequest,
  RegistryService as registry,
  WriteContentsRequest,
} from "../../dist/grpc/gen/cudashm/v1/registry.js";
import type { Bench, Case, Contender, Row, Skipped } from "../case.js";
import type { GrpcStep, HttpStep, LoadResult } from "../load/jobs.js";
import { type Load, loadContender } from "../load-contender.js";
import { exportMemory } from "../memory.js";
import { fill } from "../processes/fill.js";
import { ServerProcess } from "../processes/server.js";
import { regionName } from "../servers/arguments.js";
import { contentsPath } from "../servers/http-api.js";
import { unaryCall } from "../steps.js";

const region = regionName(0);

interface Face {
  readonly protocol: "http" | "grpc";
  readonly script: "node-http" | "grpc-js";
  readonly baseline: string;
  read(bytes: number): HttpStep | GrpcStep;
  write(bytes: number): HttpStep | GrpcStep;
}

const httpFace: Face = {
  protocol: "http",
  script: "node-http",
  baseline: "node:http, a ready buffer",
  read: (bytes) => ({ method: "GET", path: `${contentsPath(region)}?byte_size=${bytes}` }),
  write: (bytes) => ({ method: "PUT", path: contentsPath(region), bodyBytes: bytes }),
};

/** The largest that a request of the product may carry. */
const writtenPieceBytes = 63 * 1024;

const grpcFace: Face = {
  protocol: "grpc",
  script: "grpc-js",
  baseline: "grpc-js, messages of that size",
  read(bytes) {
    const request = { name: region, offset: 0n, byteSize: BigInt(bytes) };
    return unaryCall(registry.readContents, ReadContentsRequest.encode(request).finish());
  },
  write(bytes) {
    const window = { name: region, offset: 0n, byteSize: BigInt(bytes) };
    const piece = (size: number) => ({ part: { $case: "data", value: Buffer.alloc(size, 1) } }) as const;
    const rest = bytes % writtenPieceBytes;
    return {
      path: registry.writeContents.path,
      isStream: true,
      messages: [
        part({ part: { $case: "window", value: window } }, 1),
        part(piece(writtenPieceBytes), Math.floor(bytes / writtenPieceBytes)),
        ...(rest === 0 ? [] : [part(piece(rest), 1)]),
      ],
    };
  },
};

function part(message: WriteContentsRequest, times: number): GrpcStep["messages"][number] {
  return { b64: Buffer.from(WriteContentsRequest.encode(message).finish()).toString("base64"), times };
}

/** What moves through a region, beside what the transport alone moves and what memcpy does in the same process. */
export const contentsHttp = contentsCase("contents-http", "contents over HTTP", httpFace);
export const contentsGrpc = contentsCase("contents-grpc", "contents over gRPC", grpcFace);

function contentsCase(name: string, title: string, face: Face): Case {
  return { name, title, rows: (bench) => rows(bench, face) };
}

async function* rows(bench: Bench, face: Face): AsyncGenerator<Row | Skipped> {
  const bytes = (bench.isTiny ? 1 : 64) * 2 ** 20;
  await using memory = await exportMemory(bench, 1, bytes);
  await using product = await ServerProcess.product(bench, ["--allow-contents=true"]);
  await using baseline = await ServerProcess.baseline(bench, face.script);
  await fill(bench, product, 1, memory.bodies);

  const memcpy: Contender = {
    name: "memcpy in cudashm's process",
    async measure() {
      return { value: await product.memcpy({ bytes, seconds: bench.seconds }) };
    },
  };
  for (const what of ["read", "write"] as const) {
    const name = `${what} ${bytes / 2 ** 20} MiB, 1 connection`;
    const load: Load = {
      protocol: face.protocol,
      lanes: [[face[what](bytes)]],
      value: ({ requests, waitedSeconds }: LoadResult) => (requests * bytes) / 2 ** 20 / waitedSeconds,
      showsLatency: false,
      watchesLoop: true,
    };
    const contender = loadContender(bench, "cudashm", product, load);
    const refusal = await contender.measure().then(
      () => null,
      (error: Error) => error.message,
    );
    // A service that has no such call yet is no failure of the benchmark.
    if (refusal === "grpc-status 12") {
      yield { name, skipped: "the service does not serve cudashm.v1.Registry (UNIMPLEMENTED)" };
      continue;
    }
    if (refusal !== null) throw new Error(refusal);
    yield {
      name,
      unit: "MiB/s",
      better: "more",
      contenders: [contender, loadContender(bench, face.baseline, baseline, load), memcpy],
      targets: [{ against: face.baseline, atLeast: 0.5 }],
    };
  }
}
