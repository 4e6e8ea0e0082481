import type { Server, ServerWritableStream } from "@grpc/grpc-js";
import { RegistryError } from "../core/errors.js";
import type { FaceContext } from "../core/face-context.js";
import { rawDefinition, undecodable } from "./call.js";
import { statusOfError } from "./errors.js";
import * as wire from "./gen/grpc/health/v1/health.js";
import { inferenceServiceName } from "./inference-service.js";
import type { OpenCalls } from "./open-calls.js";
import { registryServiceName } from "./registry/registry-service.js";
import { mayBegin } from "./stream-gate.js";
import { addUnaryMethod } from "./unary-call.js";
import { decodeMessage, encodeMessage } from "./wire.js";

type ServingStatus = wire.HealthCheckResponse_ServingStatus;
const { SERVING, NOT_SERVING, SERVICE_UNKNOWN } = wire.HealthCheckResponse_ServingStatus;

// Empty is the server as a whole.
const services = ["", inferenceServiceName, registryServiceName];

const { check, watch, list } = wire.HealthService;

/**
 * Adds `grpc.health.v1.Health`, which tells the face's readiness. Nothing announces a change of that, so
 * while anyone watches it is looked at every `pollMs` milliseconds.
 */
export function addHealthService(
  server: Server,
  face: FaceContext,
  openCalls: OpenCalls,
  pollMs: number,
): void {
  const servingStatus = () => (face.readiness() === "ready" ? SERVING : NOT_SERVING);

  addUnaryMethod(
    server,
    {
      path: check.path,
      request: wire.HealthCheckRequest,
      handle: ({ service }) => {
        if (services.includes(service)) return encodeStatus(servingStatus());
        throw new RegistryError("NOT_FOUND", "there is no such service here");
      },
    },
    face,
    openCalls,
  );
  addUnaryMethod(
    server,
    {
      path: list.path,
      request: wire.HealthListRequest,
      handle: () => {
        const statuses = new Map(services.map((service) => [service, { status: servingStatus() }]));
        return encodeMessage(wire.HealthListResponse, { statuses });
      },
    },
    face,
    openCalls,
  );
  server.addService(
    { watch: rawDefinition(watch.path, { requestStream: false, responseStream: true }) },
    {
      watch: (stream: ServerWritableStream<Buffer, Buffer>) => {
        if (mayBegin(stream, (call) => face.gates?.grpc?.checkRestricted("health", call)))
          startWatch(stream, servingStatus, openCalls, pollMs);
      },
    },
  );
}

function startWatch(
  stream: ServerWritableStream<Buffer, Buffer>,
  servingStatus: () => ServingStatus,
  openCalls: OpenCalls,
  pollMs: number,
): void {
  let known: boolean;
  try {
    known = services.includes(decodeMessage(wire.HealthCheckRequest, stream.request).service);
  } catch (thrown) {
    stream.emit("error", statusOfError(undecodable(thrown)));
    return;
  }
  let told: ServingStatus | undefined;
  const tell = () => {
    const now = known ? servingStatus() : SERVICE_UNKNOWN;
    if (now !== told) stream.write(encodeStatus(now));
    told = now;
  };
  tell();
  const timer = setInterval(tell, pollMs).unref();
  const watching = {
    abort: () => {
      tell();
      stream.end();
    },
  };
  stream.on("close", () => {
    clearInterval(timer);
    openCalls.delete(watching);
  });
  openCalls.add(watching);
}

function encodeStatus(status: ServingStatus): Buffer {
  return encodeMessage(wire.HealthCheckResponse, { status });
}
