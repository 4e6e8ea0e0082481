import { type Client, type Metadata, status } from "@grpc/grpc-js";
import { metadataOf, registryClient, tritonClient } from "../kill/grpc-client.js";
import {
  type Answer,
  type Disturbance,
  type FaceClient,
  lost,
  type Memory,
  type RegisterOptions,
  type Request,
} from "./answer.js";
import type { PeerProxy } from "./peer-proxy.js";

interface Failure {
  readonly code: number;
  readonly details: string;
}

interface Call {
  cancel(): void;
  on(event: "data", read: (message: Body) => void): this;
  on(event: "error", failed: (error: Failure) => void): this;
  on(event: "end", ended: () => void): this;
  write(message: object): boolean;
  end(): void;
}

type Body = Readonly<Record<string, unknown>>;
type Done = (error: Failure | null, body: Body) => void;
type CallOptions = { readonly deadline?: number };
type Methods = Client & {
  readonly [method: string]: ((...args: unknown[]) => Call) | undefined;
};

/** What gRPC's library says of a connection that ended under a call, or before it. */
const lostTexts =
  /^(Connection dropped|No connection established|Received RST_STREAM|read ECONNRESET|write E)/;

const maxWriteBytes = 63 * 1024;

/** A client of the gRPC face, by way of a proxy that others may use too. */
export class GrpcFaceClient implements FaceClient {
  readonly #proxy: PeerProxy;
  readonly #triton: Methods;
  readonly #registry: Methods;

  constructor(proxy: PeerProxy) {
    this.#proxy = proxy;
    this.#triton = tritonClient(proxy.address) as unknown as Methods;
    this.#registry = registryClient(proxy.address) as unknown as Methods;
  }

  call(wanted: Request, session: string | null, disturbance: Disturbance | null): Promise<Answer> {
    const options: CallOptions =
      disturbance?.kind === "deadline" ? { deadline: Date.now() + disturbance.afterMs } : {};
    const metadata = metadataOf({ token: null, session: session === null ? null : { secret: session } });
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout | undefined;
      const done = (error: Failure | null, body: Body): void => {
        clearTimeout(timer);
        if (error === null) resolve({ code: "OK", text: "", body });
        else if (isLost(error, disturbance)) resolve(lost);
        else resolve({ code: status[error.code] ?? "", text: error.details, body: {} });
      };
      const call = this.#make(wanted, metadata, options, done);
      if (disturbance === null || disturbance.kind === "deadline") return;
      timer = setTimeout(() => {
        if (disturbance.kind === "cut") this.#proxy.cut();
        // It may not have had a connection yet that could be cut.
        call.cancel();
      }, disturbance.afterMs);
    });
  }

  #make(wanted: Request, metadata: Metadata, options: CallOptions, done: Done): Call {
    const unary = (client: Methods, method: string, request: object): Call =>
      started(client[method]?.(request, metadata, options, done));
    const stream = (method: string, request: object): Call => {
      const call = started(this.#registry[method]?.(request, metadata, options));
      call
        .on("data", () => {})
        .on("error", (error) => done(error, {}))
        .on("end", () => done(null, {}));
      return call;
    };
    switch (wanted.op) {
      case "registerAsTriton": {
        const request = { name: wanted.name, ...memoryMessage(wanted.memory) };
        return unary(this.#triton, "CudaSharedMemoryRegister", request);
      }
      case "register": {
        const request = {
          name: wanted.name,
          ...memoryMessage(wanted.memory),
          ...optionsMessage(wanted.options),
        };
        return unary(this.#registry, "Register", request);
      }
      case "unregisterAsTriton":
        return unary(this.#triton, "CudaSharedMemoryUnregister", { name: wanted.name });
      case "unregisterAll":
        return unary(this.#triton, "CudaSharedMemoryUnregister", {});
      case "renew":
        return unary(this.#registry, "Renew", { name: wanted.name, lease: { seconds: wanted.leaseSeconds } });
      case "release": {
        const { name, waitMs, force } = wanted;
        return unary(this.#registry, "Unregister", { name, wait: milliseconds(waitMs), force });
      }
      case "statusAll":
        return unary(this.#triton, "CudaSharedMemoryStatus", {});
      case "status":
        return unary(this.#triton, "CudaSharedMemoryStatus", { name: wanted.name });
      case "get":
        return unary(this.#registry, "Get", { name: wanted.name, wait: milliseconds(wanted.waitMs) });
      case "list":
        return unary(this.#registry, "List", { page_size: 3 });
      case "devices":
        return unary(this.#registry, "ListDevices", {});
      case "server":
        return unary(this.#registry, "GetServer", {});
      case "read":
        return stream("ReadContents", { name: wanted.name });
      case "write": {
        const call = started(this.#registry.WriteContents?.(metadata, options, done));
        const { name, bytes } = wanted;
        call.write({ window: { name, byte_size: bytes.length } });
        for (let at = 0; at < bytes.length; at += maxWriteBytes) {
          call.write({ data: bytes.subarray(at, at + maxWriteBytes) });
        }
        call.end();
        return call;
      }
      case "checksum":
        return unary(this.#registry, "Checksum", { name: wanted.name });
      case "watch":
        return stream("Watch", { from_revision: 0 });
    }
  }

  [Symbol.dispose](): void {
    this.#triton.close();
    this.#registry.close();
  }
}

/** Whoever shares a connection with one who cuts it loses calls that nobody disturbed. */
function isLost({ code, details }: Failure, disturbance: Disturbance | null): boolean {
  return (disturbance !== null && code === status.CANCELLED) || lostTexts.test(details);
}

function started(call: Call | undefined): Call {
  if (call === undefined) throw new Error("no such method");
  return call;
}

function milliseconds(count: number) {
  return { seconds: Math.floor(count / 1000), nanos: (count % 1000) * 1e6 };
}

function memoryMessage({ handle, deviceId, byteSize }: Memory) {
  return { raw_handle: handle, device_id: deviceId, byte_size: byteSize };
}

function optionsMessage({ offset, labels, leaseSeconds, exporter, replaces, dryRun }: RegisterOptions) {
  return {
    offset,
    labels,
    dry_run: dryRun,
    ...(leaseSeconds !== null && { lease: { seconds: leaseSeconds } }),
    ...(replaces !== null && { replace_generation: replaces }),
    ...(exporter !== null && {
      exporter: {
        pid: exporter.pid,
        start_time: String(exporter.startTime),
        boot_id: exporter.bootId,
        pid_namespace: String(exporter.pidNamespace),
      },
    }),
  };
}
