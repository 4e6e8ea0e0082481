import { status } from "@grpc/grpc-js";
import type { Exporter } from "../../src/core/exporter.js";
import { metadataOf, registryClient, tritonClient, type UnaryClient } from "./grpc-client.js";
import type { Fact } from "./ledger.js";
import type { Caller, Outcome } from "./outcome.js";

/** What gRPC's library makes of a connection that ends under a call. */
const lostCodes: ReadonlySet<number> = new Set([
  status.UNAVAILABLE,
  status.CANCELLED,
  status.INTERNAL,
  status.UNKNOWN,
]);

/** A client of the gRPC face that gives every call one try. */
export class GrpcCaller implements Disposable {
  readonly #triton: UnaryClient;
  readonly #registry: UnaryClient;

  constructor(address: string) {
    this.#triton = tritonClient(address);
    this.#registry = registryClient(address);
  }

  registerAsTriton(fact: Fact, caller: Caller): Promise<Outcome> {
    return outcome(this.#triton, "CudaSharedMemoryRegister", memoryOf(fact), caller);
  }

  unregisterAsTriton(name: string, caller: Caller): Promise<Outcome> {
    return outcome(this.#triton, "CudaSharedMemoryUnregister", { name }, caller);
  }

  unregisterAll(caller: Caller): Promise<Outcome> {
    return outcome(this.#triton, "CudaSharedMemoryUnregister", { name: "" }, caller);
  }

  /** In the place of another, if its generation is given. */
  register(
    fact: Fact,
    caller: Caller,
    replaces: number | null = null,
    exporter: Exporter = fact.allocation.host.identity,
  ): Promise<Outcome> {
    const request = {
      ...memoryOf(fact),
      offset: fact.offset,
      labels: fact.labels,
      ...(fact.leaseSeconds !== null && { lease: { seconds: fact.leaseSeconds } }),
      ...(replaces !== null && { replace_generation: replaces }),
      ...(fact.isExporterNamed && {
        exporter: {
          pid: exporter.pid,
          start_time: String(exporter.startTime),
          boot_id: exporter.bootId,
          pid_namespace: String(exporter.pidNamespace),
        },
      }),
    };
    return outcome(this.#registry, "Register", request, caller);
  }

  release(name: string, caller: Caller): Promise<Outcome> {
    return outcome(this.#registry, "Unregister", { name, wait: { seconds: 5 } }, caller);
  }

  renew(name: string, leaseSeconds: number, caller: Caller): Promise<Outcome> {
    return outcome(this.#registry, "Renew", { name, lease: { seconds: leaseSeconds } }, caller);
  }

  [Symbol.dispose](): void {
    this.#triton.close();
    this.#registry.close();
  }
}

function outcome(client: UnaryClient, method: string, request: object, caller: Caller): Promise<Outcome> {
  return new Promise((resolve) => {
    client[method]?.(request, metadataOf(caller), (error, answer) => {
      if (error === null) {
        const { generation } = answer;
        resolve({ kind: "done", generation: generation === undefined ? null : Number(generation) });
      } else if (lostCodes.has(error.code)) resolve({ kind: "lost", why: error.message });
      else resolve({ kind: "refused", code: status[error.code], text: error.details });
    });
  });
}

function memoryOf({ name, allocation, byteSize }: Fact) {
  return { name, raw_handle: allocation.handle, device_id: allocation.deviceId, byte_size: byteSize };
}
