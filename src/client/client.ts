import { Connection } from "./connection.js";
import { malformedAnswer, refusalIn } from "./errors.js";
import { regionSegment, registerSegment } from "./region-path.js";
import { decodeStatuses, digitsOf, encodeRegistration, type RegionStatus } from "./wire.js";

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

export interface CallOptions {
  /** Gives the call up: CANCELLED, or DEADLINE_EXCEEDED for an `AbortSignal.timeout`. */
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

/** Part of a region. */
export interface RegionWindow {
  /** In bytes from the start of the region; 0 if left out. */
  readonly offset?: bigint | number | undefined;
  /** To the end of the region if left out. */
  readonly byteSize?: bigint | number | undefined;
}

export interface ServiceMetadata {
  readonly name: string;
  readonly version: string;
  readonly extensions: readonly string[];
  /** Which driver the service runs on, such as `cuda` or `emulated`; undefined from a service that does not say. */
  readonly cudaDriver: string | undefined;
}

/** Every call rejects with a CudaSharedMemoryError and nothing else. */
export interface CudaSharedMemoryClient {
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

  function get<T>(path: string, signal: AbortSignal | undefined, decode: (text: string) => T): Promise<T> {
    return connection.exchange({ method: "GET", path, signal }, async (answer) => {
      const text = await textOf(answer);
      try {
        return decode(text);
      } catch (cause) {
        throw malformedAnswer(answer, cause);
      }
    });
  }

  async function post(path: string, signal: AbortSignal | undefined, json?: string): Promise<void> {
    const body = json === undefined ? {} : { body: { contentType: "application/json", content: json } };
    await connection.exchange({ method: "POST", path, signal, ...body }, emptyAnswer);
  }

  function health(path: string, signal: AbortSignal | undefined): Promise<boolean> {
    return connection.exchange({ method: "GET", path, signal }, async (answer) => {
      await answer.text();
      return answer.status === 200;
    });
  }

  return {
    async register(name, { rawHandle, deviceId, byteSize }, { signal } = {}) {
      const path = `${cuda}/region/${registerSegment(name)}/register`;
      await post(path, signal, encodeRegistration(rawHandle, deviceId, byteSize));
    },

    async status(name, { signal } = {}) {
      return get(`${cuda}/region/${regionSegment(name)}/status`, signal, onlyStatus);
    },

    async statuses({ signal } = {}) {
      return get(`${cuda}/status`, signal, decodeStatuses);
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
      return get("/v2", signal, decodeMetadata);
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

function contentsPath(name: string, { offset = 0, byteSize }: RegionWindow): string {
  const path = `/v1/regions/${regionSegment(name)}/contents?offset=${digitsOf("offset", offset)}`;
  return byteSize === undefined ? path : `${path}&byte_size=${digitsOf("byteSize", byteSize)}`;
}

/** The text of a success, which is exactly 200. */
async function textOf(answer: Response): Promise<string> {
  const text = await answer.text();
  if (answer.status !== 200) throw refusalIn(answer, text);
  return text;
}

// A page that says 200 and has words in it was not the service's answer, so nothing was registered.
async function emptyAnswer(answer: Response): Promise<void> {
  if ((await textOf(answer)) !== "") throw malformedAnswer(answer);
}

function onlyStatus(json: string): RegionStatus {
  const [region, ...others] = decodeStatuses(json);
  if (region === undefined || others.length > 0) throw new TypeError("not the status of one region");
  return region;
}

function decodeMetadata(json: string): ServiceMetadata {
  const { name, version, extensions, cuda_driver } = JSON.parse(json) as Readonly<Record<string, unknown>>;
  if (typeof name !== "string" || typeof version !== "string" || !Array.isArray(extensions)) {
    throw new TypeError("not the metadata of a service");
  }
  return { name, version, extensions, cudaDriver: typeof cuda_driver === "string" ? cuda_driver : undefined };
}
