import { decoded, emptyAnswer, jsonBody } from "./answers.js";
import type { CallOptions } from "./call-options.js";
import { Connection } from "./connection.js";
import { refusalIn } from "./errors.js";
import { list, membersOf, orMissing, parseExact, text, whole } from "./read-json.js";
import { regionSegment, registerSegment } from "./region-path.js";
import { type RegionWindow, windowQuery } from "./region-window.js";
import { createRegistryClient, type RegistryClient } from "./registry-client.js";
import { decodeStatuses, encodeRegistration, type RegionStatus } from "./wire.js";

export interface CudaSharedMemoryClientOptions {
  /** Where the service's HTTP face is, such as `http://127.0.0.1:8000`. A path is kept, so a proxy may add one. */
  readonly baseUrl: string | URL;
  /** Used in place of the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Sent with every request, such as `{ authorization: "Bearer ..." }`. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Once aborted, every call under way and to come is given up. */
  readonly signal?: AbortSignal | undefined;
}

/** GPU memory to be registered under a name. */
export interface RegionRegistration {
  /** The 64 bytes of a `cudaIpcMemHandle_t`, as they are or in base64. */
  readonly rawHandle: Uint8Array | string;
  /** The service's ordinal of the device that the memory is on. */
  readonly deviceId: bigint | number;
  /** Bytes from the start of the allocation, at least 1. */
  readonly byteSize: bigint | number;
}

export interface ServiceMetadata {
  readonly name: string;
  readonly version: string;
  readonly extensions: readonly string[];
  /** Which driver the service runs on, such as `cuda` or `emulated`; undefined from a service that does not say. */
  readonly cudaDriver: string | undefined;
  /** Another one for each start of the service; undefined from a service that does not say. */
  readonly instanceId: string | undefined;
  /** Grows by one with each start on one state file. */
  readonly epoch: bigint | undefined;
}

/** Every call rejects with a CudaSharedMemoryError and nothing else. The first ones are Triton's. */
export interface CudaSharedMemoryClient extends RegistryClient {
  /** Registers a region; the service keeps its memory mapped until it is unregistered. */
  register(name: string, registration: RegionRegistration, options?: CallOptions): Promise<void>;
  /** One region; NOT_FOUND if there is none of this name. */
  status(name: string, options?: CallOptions): Promise<RegionStatus>;
  /** Every region, sorted by the bytes of the names. */
  statuses(options?: CallOptions): Promise<readonly RegionStatus[]>;
  /** Does nothing if there is no region of this name. */
  unregister(name: string, options?: CallOptions): Promise<void>;
  /** Unregisters every region there is, whoever registered it. */
  unregisterAll(options?: CallOptions): Promise<void>;
  /** Whether the service says that it is alive; UNAVAILABLE if nobody answers. */
  isLive(options?: CallOptions): Promise<boolean>;
  /** Whether the service can register regions now; UNAVAILABLE if nobody answers. */
  isReady(options?: CallOptions): Promise<boolean>;
  metadata(options?: CallOptions): Promise<ServiceMetadata>;
  /** Copies a region's bytes out of GPU memory. PERMISSION_DENIED unless the service runs with --allow-contents. */
  readContents(name: string, window?: RegionWindow, options?: CallOptions): Promise<Uint8Array>;
  /** Copies bytes into a region from `offset` on, and resolves when they are in GPU memory. Needs the same flag. */
  writeContents(
    name: string,
    bytes: Uint8Array,
    window?: Pick<RegionWindow, "offset">,
    options?: CallOptions,
  ): Promise<void>;
}

/** A client of the service's HTTP face. Throws INVALID_ARGUMENT for a base URL that cannot be used. */
export function createCudaSharedMemoryClient(options: CudaSharedMemoryClientOptions): CudaSharedMemoryClient {
  const connection = new Connection(options);
  const cuda = "/v2/cudasharedmemory";

  async function post(path: string, signal: AbortSignal | undefined, json?: string): Promise<void> {
    const body = json === undefined ? {} : { body: jsonBody(json) };
    await connection.exchange({ method: "POST", path, signal, ...body }, emptyAnswer);
  }

  function health(path: string, signal: AbortSignal | undefined): Promise<boolean> {
    return connection.exchange({ method: "GET", path, signal }, async (answer) => {
      await answer.text();
      return answer.status === 200;
    });
  }

  return {
    ...createRegistryClient(connection, options.signal),

    async register(name, { rawHandle, deviceId, byteSize }, { signal } = {}) {
      const path = `${cuda}/region/${registerSegment(name)}/register`;
      await post(path, signal, encodeRegistration(rawHandle, deviceId, byteSize));
    },

    async status(name, { signal } = {}) {
      return decoded(
        connection,
        { method: "GET", path: `${cuda}/region/${regionSegment(name)}/status`, signal },
        onlyStatus,
      );
    },

    async statuses({ signal } = {}) {
      return decoded(connection, { method: "GET", path: `${cuda}/status`, signal }, decodeStatuses);
    },

    async unregister(name, { signal } = {}) {
      await post(`${cuda}/region/${regionSegment(name)}/unregister`, signal);
    },

    async unregisterAll({ signal } = {}) {
      await post(`${cuda}/unregister`, signal);
    },

    async isLive({ signal } = {}) {
      return health("/v2/health/live", signal);
    },

    async isReady({ signal } = {}) {
      return health("/v2/health/ready", signal);
    },

    async metadata({ signal } = {}) {
      return decoded(connection, { method: "GET", path: "/v2", signal }, decodeMetadata);
    },

    async readContents(name, window = {}, { signal } = {}) {
      const path = contentsPath(name, window);
      return connection.exchange({ method: "GET", path, signal }, async (answer) => {
        if (answer.status !== 200) throw refusalIn(answer, await answer.text());
        return new Uint8Array(await answer.arrayBuffer());
      });
    },

    async writeContents(name, bytes, { offset = 0 } = {}, { signal } = {}) {
      const path = contentsPath(name, { offset, byteSize: bytes.byteLength });
      const body = { contentType: "application/octet-stream", content: bytes };
      await connection.exchange({ method: "PUT", path, signal, body }, emptyAnswer);
    },
  };
}

function contentsPath(name: string, window: RegionWindow): string {
  return `/v1/regions/${regionSegment(name)}/contents${windowQuery(window)}`;
}

function onlyStatus(json: string): RegionStatus {
  const [region, ...others] = decodeStatuses(json);
  if (region === undefined || others.length > 0) throw new TypeError("not the status of one region");
  return region;
}

function decodeMetadata(json: string): ServiceMetadata {
  const members = membersOf(parseExact(json));
  return {
    name: text(members, "name"),
    version: text(members, "version"),
    extensions: list(members, "extensions", String),
    cudaDriver: orMissing(members, "cuda_driver", text),
    instanceId: orMissing(members, "instance_id", text),
    epoch: orMissing(members, "epoch", whole),
  };
}
