import type { SeededRandom } from "../kill/seeded-random.js";
import { type HoldStream, holdSession } from "../kill/session-client.js";
import type { Answer, Disturbance, FaceClient, RegisterOptions, Request } from "./answer.js";
import type { SharedMemory } from "./shared-memory.js";

export interface MixedClientOptions {
  readonly random: SeededRandom;
  readonly face: FaceClient;
  /** Where it holds a session over gRPC, in which it makes its calls; null for one without. */
  readonly sessionAddress: string | null;
  /** Shared with all other clients. */
  readonly names: readonly string[];
  readonly memories: readonly SharedMemory[];
  /** Calls in a hundred that their client will not wait for. */
  readonly disturbedPercent: number;
}

/** A call and what became of it. */
export interface Outcome {
  readonly request: Request;
  readonly session: string | null;
  readonly disturbance: Disturbance | null;
  readonly answer: Answer;
}

/** How often a client makes a call, relative to the others. */
const weights = {
  registerAsTriton: 14,
  register: 18,
  unregisterAsTriton: 12,
  unregisterAll: 1,
  renew: 4,
  release: 12,
  statusAll: 5,
  status: 5,
  get: 6,
  list: 3,
  devices: 1,
  server: 1,
  read: 6,
  write: 6,
  checksum: 4,
  watch: 2,
} as const satisfies Record<Request["op"], number>;

const everyOp = Object.entries(weights).flatMap(([op, weight]) =>
  Array<Request["op"]>(weight).fill(op as Request["op"]),
);

const disturbances = ["cancel", "cancel", "deadline", "deadline", "cut"] as const;
const longestDisturbanceMs = 40;
const longestWaitMs = 20;

/** A client that makes one call after the other, of all kinds. */
export class MixedClient implements AsyncDisposable {
  readonly #options: MixedClientOptions;
  #hold: HoldStream | null = null;
  #lastGeneration = 1;

  constructor(options: MixedClientOptions) {
    this.#options = options;
  }

  async step(): Promise<Outcome> {
    const { random, face, disturbedPercent } = this.#options;
    await this.#changeSession();
    const request = this.#request(random.pick(everyOp));
    // A watch ends in no other way.
    const isDisturbed = request.op === "watch" || random.percent(disturbedPercent);
    const disturbance = isDisturbed ? this.#disturbance() : null;
    const session = this.#hold?.session.secret ?? null;
    const answer = await face.call(request, session, disturbance);
    const { generation } = answer.body;
    if (generation !== undefined && Number(generation) > 0) this.#lastGeneration = Number(generation);
    return { request, session, disturbance, answer };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#hold?.cancel();
    await this.#hold?.ended;
  }

  /** Now and then ends its session and begins another. */
  async #changeSession(): Promise<void> {
    const { random, sessionAddress } = this.#options;
    if (sessionAddress === null || !random.percent(this.#hold === null ? 30 : 3)) return;
    this.#hold?.cancel();
    const graceSeconds = random.percent(50) ? 0 : 0.05;
    // The way there may be cut at this moment.
    this.#hold = await holdSession(sessionAddress, null, { graceSeconds }).catch(() => null);
  }

  #disturbance(): Disturbance {
    const { random } = this.#options;
    return { kind: random.pick(disturbances), afterMs: random.below(longestDisturbanceMs) };
  }

  #request(op: Request["op"]): Request {
    const { random, names, memories } = this.#options;
    const name = random.pick(names);
    const memory = random.pick(memories);
    const half = memory.byteSize / 2;
    switch (op) {
      case "registerAsTriton":
        return { op, name, memory };
      case "register":
        return { op, name, memory: { ...memory, byteSize: half }, options: this.#registerOptions(memory) };
      case "renew":
        return { op, name, leaseSeconds: 1 + random.below(3) };
      case "release":
        return { op, name, waitMs: random.below(longestWaitMs), force: random.percent(30) };
      case "get":
        return { op, name, waitMs: random.below(longestWaitMs) };
      case "write":
        return { op, name, bytes: Buffer.alloc(1 + random.below(half), random.below(256)) };
      case "status":
      case "unregisterAsTriton":
      case "read":
      case "checksum":
        return { op, name };
      default:
        return { op };
    }
  }

  #registerOptions({ byteSize, exporter }: SharedMemory): RegisterOptions {
    const { random } = this.#options;
    return {
      offset: random.below(byteSize / 2),
      labels: random.percent(50) ? {} : { round: String(random.below(100)), of: "stress" },
      leaseSeconds: random.percent(30) ? 1 + random.below(2) : null,
      exporter: random.percent(40) ? exporter : null,
      replaces: random.percent(25) ? this.#lastGeneration : null,
      dryRun: random.percent(15),
    };
  }
}
