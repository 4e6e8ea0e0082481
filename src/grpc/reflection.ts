import { EventEmitter } from "node:events";
import { fileURLToPath } from "node:url";
import type {
  MethodDefinition,
  Server,
  ServerDuplexStream,
  ServiceDefinition,
  UntypedServiceImplementation,
} from "@grpc/grpc-js";
import type { FaceContext } from "../core/face-context.js";
import { openGate } from "../core/gate.js";
import { rawDefinition, undecodable } from "./call.js";
import { statusOfError } from "./errors.js";
import type { OpenCalls } from "./open-calls.js";
import { mayBegin } from "./stream-gate.js";
import { assertWellFormed } from "./well-formed.js";

const paths = ["v1", "v1alpha"].map(
  (version) => `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
);

// The same from src/grpc, from dist/grpc and in the package.
const protoFolder = fileURLToPath(new URL("../../proto/", import.meta.url));
const protoFiles = [
  "inference/grpc_service.proto",
  "cudashm/v1/registry.proto",
  "grpc/health/v1/health.proto",
];

type ReflectionStream = ServerDuplexStream<Buffer, Buffer>;

/** One version of the reflection protocol, as @grpc/reflection implements it. */
interface ReflectionMethod {
  readonly definition: MethodDefinition<unknown, unknown>;
  /** Reads requests from the stream's `data` and `end` events, and answers with its `write` and `end`. */
  handle(stream: EventEmitter): void;
}

/**
 * Adds server reflection. Its packages and descriptors take as long to load as the rest of the service to
 * start, so the first client that asks pays for them.
 */
export function addReflection(server: Server, face: FaceContext, openCalls: OpenCalls): void {
  const gate = face.gates?.grpc ?? openGate;
  let loading: Promise<ReadonlyMap<string, ReflectionMethod>> | undefined;
  for (const path of paths) {
    const handler = (stream: ReflectionStream) => {
      if (!mayBegin(stream, (call) => gate.identify(call, face.registry.sessions))) return;
      loading ??= loadMethods();
      loading
        .then((methods) => serve(stream, methods.get(path), openCalls))
        .catch((error: unknown) => {
          face.reportFault({ requestId: face.nextRequestId(), protocol: "grpc", error });
          stream.emit("error", statusOfError(error));
        });
    };
    const definition = rawDefinition(path, { requestStream: true, responseStream: true });
    server.addService({ [path]: definition }, { [path]: handler });
  }
}

async function loadMethods(): Promise<ReadonlyMap<string, ReflectionMethod>> {
  const [{ loadSync }, { ReflectionService }] = await Promise.all([
    import("@grpc/proto-loader"),
    import("@grpc/reflection"),
  ]);
  const methods = new Map<string, ReflectionMethod>();
  new ReflectionService(loadSync(protoFiles, { includeDirs: [protoFolder], keepCase: true })).addToServer({
    addService(service: ServiceDefinition, implementation: UntypedServiceImplementation) {
      for (const [name, definition] of Object.entries(service)) {
        methods.set(definition.path, {
          definition,
          handle: implementation[name] as ReflectionMethod["handle"],
        });
      }
    },
  });
  return methods;
}

function serve(stream: ReflectionStream, method: ReflectionMethod | undefined, openCalls: OpenCalls): void {
  if (method === undefined) throw new Error("@grpc/reflection has no such version of the protocol");
  // The client may have left while the packages were loaded.
  if (stream.destroyed) return;
  const { requestDeserialize, responseSerialize } = method.definition;
  const messages = Object.assign(new EventEmitter(), {
    write: (response: unknown) => stream.write(responseSerialize(response)),
    end: () => stream.end(),
  });
  method.handle(messages);
  stream.on("data", (bytes: Buffer) => {
    if (!stream.writable) return;
    let request: unknown;
    try {
      assertWellFormed(bytes);
      request = requestDeserialize(bytes);
    } catch (thrown) {
      stream.emit("error", statusOfError(undecodable(thrown)));
      return;
    }
    messages.emit("data", request);
  });
  stream.on("end", () => messages.emit("end"));
  const open = { abort: () => stream.end() };
  stream.on("close", () => openCalls.delete(open));
  openCalls.add(open);
}
