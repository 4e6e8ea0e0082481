import type { RegistryError } from "./errors.js";
import type { SharedMapping } from "./mapping-pool.js";
import type { CallContext, Protocol, RegionState, RegionStatus, RegisterRequest } from "./region.js";

/** A call of the registry and when it began (milliseconds, monotonic), for the changes that it makes. */
export interface Origin {
  readonly context: CallContext;
  readonly startedAt: number;
}

/** One life of a name, from the register that reserves it to the close that frees it. */
export class Registration {
  readonly name: string;
  readonly byteSize: bigint;
  readonly generation: bigint;
  readonly owner: string;
  readonly protocol: Protocol;
  /** `gone` once the name is free again. */
  state: RegionState | "gone" = "registering";
  deviceId = -1;
  /** Set from the open to the close. */
  mapping: SharedMapping | undefined;
  /** Milliseconds since the epoch, from the first change on. */
  registeredAt: number | undefined;
  /** Resolves when the register was carried out or undone. */
  settled: Promise<void> = Promise.resolve();
  /** Answers the caller of a register that is abandoned. */
  onAbandon: (error: RegistryError) => void = () => {};
  /** The unregister under way, shared by all who ask for one. */
  leaving: Promise<void> | undefined;
  /** While the driver closes the mapping: nobody may use it any more. */
  closing = false;
  /** Why the last close failed. */
  closeFailure: RegistryError | undefined;
  /** The unregister that its last pin makes it wait for. */
  drain: Origin | undefined;
  #abandoned: RegistryError | undefined;
  #committing = false;
  #pins = 0;
  #status: RegionStatus | undefined;

  constructor(request: RegisterRequest, generation: bigint, context: CallContext) {
    this.name = request.name;
    this.byteSize = request.byteSize;
    this.generation = generation;
    this.owner = context.owner;
    this.protocol = context.protocol;
  }

  /** Why nobody waits for the register any more, so that it has to be undone. */
  get abandoned(): RegistryError | undefined {
    return this.#abandoned;
  }

  /** Whether the name will be free once the driver is done. */
  get isRollingBack(): boolean {
    return this.state === "registering" && this.#abandoned !== undefined;
  }

  /** Answers the caller of the register with `error` and has it undone, unless it is too late for that. */
  abandon(error: RegistryError): void {
    if (this.state !== "registering" || this.#committing || this.#abandoned !== undefined) return;
    this.#abandoned = error;
    this.onAbandon(error);
  }

  /** From here on it is too late to abandon; false if that was done already. */
  beginCommit(): boolean {
    this.#committing = this.#abandoned === undefined;
    return this.#committing;
  }

  get pins(): number {
    return this.#pins;
  }

  set pins(count: number) {
    this.#pins = count;
    this.#status = undefined;
  }

  /** The region as it is shown; while registering, as it will be. */
  get status(): RegionStatus {
    this.#status ??= this.statusAs(this.state === "gone" ? "draining" : this.state);
    return this.#status;
  }

  /** The region as it will be shown in `state`. */
  statusAs(state: RegionState): RegionStatus {
    return {
      name: this.name,
      deviceId: this.deviceId,
      byteSize: this.byteSize,
      allocationByteSize: this.mapping?.mapping.byteSize ?? 0n,
      state,
      generation: this.generation,
      owner: this.owner,
      protocol: this.protocol,
      registeredAt: this.registeredAt ?? 0,
      pins: this.#pins,
    };
  }

  /** Moves to `state`; `status` is its snapshot if there is one, of which the pins may be out of date. */
  enter(state: RegionState | "gone", status?: RegionStatus): void {
    this.state = state;
    this.#status = status?.pins === this.#pins ? status : undefined;
  }
}
