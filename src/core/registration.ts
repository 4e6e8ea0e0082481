import type { RegistryError } from "./errors.js";
import type { Exporter } from "./exporter.js";
import type { IpcMemHandle } from "./handle.js";
import type { SharedMapping } from "./mapping-pool.js";
import type { Pin } from "./pin.js";
import type {
  CallContext,
  ChangeReason,
  Labels,
  ListedRegion,
  Protocol,
  RegionState,
  RegionStatus,
  RegisterRequest,
} from "./region.js";

/** What makes a change: a call of the registry, or the registry itself, and when it began (milliseconds, monotonic). */
export interface Origin {
  readonly context: CallContext;
  readonly startedAt: number;
  readonly reason: ChangeReason;
}

const noLabels: Labels = new Map();
const done = Promise.resolve();

/** One life of a name, from the register that reserves it to the close that frees it. */
export class Registration implements ListedRegion {
  readonly name: string;
  readonly handle: IpcMemHandle;
  readonly byteSize: bigint;
  readonly offset: bigint;
  readonly generation: bigint;
  readonly owner: string;
  readonly session: string | null;
  readonly protocol: Protocol;
  readonly labels: Labels;
  readonly exporter: Exporter | null;
  readonly isDryRun: boolean;
  /** `gone` once the name is free again. */
  state: RegionState | "gone" = "registering";
  reason: ChangeReason;
  deviceId = -1;
  deviceUuid = "";
  /** Set from the open to the close. */
  mapping: SharedMapping | undefined;
  /** Of those who were to have its name after it and could not be closed: they are closed with it. */
  leftovers: SharedMapping[] | undefined;
  /** Milliseconds since the epoch, from the first change on. */
  registeredAt: number | undefined;
  leaseMs: number | null;
  /** Milliseconds since the epoch. */
  leaseExpiresAt: number | null = null;
  isVerified = true;
  /** Resolves when the register was carried out or undone. */
  settled: Promise<void> = done;
  /** Answers the caller of a register that is abandoned. */
  onAbandon: ((error: RegistryError) => void) | undefined;
  /** The unregister under way, shared by all who ask for one. */
  leaving: Promise<void> | undefined;
  /** The replacement under way: resolves whether it succeeds or not. */
  replacing: Promise<void> | undefined;
  /** Who has the name after this one. */
  successor: Registration | undefined;
  /** Whether somebody unregisters it before it could be taken up again. */
  isUnwanted = false;
  /** Whether it would be there after a restart. */
  isJournaled = false;
  /** While the driver closes the mapping: nobody may use it any more. */
  closing = false;
  /** Whether it drains for a caller who waits for the close, so that nobody else may begin to use it. */
  refusesPins = false;
  /** Whether its close was the last on its mapping, which no other region shares then. */
  isMappingClosed = false;
  /** Why the last close failed. */
  closeFailure: RegistryError | undefined;
  /** The unregister that its last pin makes it wait for. */
  drain: Origin | undefined;
  /** Whether its exporter has exited. */
  isOrphan = false;
  /** Whether nothing ends it by itself any more. */
  isUnwatched = false;
  /** Ends the timer of its lease. */
  cancelLease: (() => void) | undefined;
  /** Ends the timer of its time as an orphan. */
  cancelGrace: (() => void) | undefined;
  /** Ends the watch over its exporter. */
  stopWatching: (() => void) | undefined;
  #abandoned: RegistryError | undefined;
  #onAbandoned: (() => void) | undefined;
  #committing = false;
  #pins: Set<Pin> | undefined;
  #lastUsedAt: number | null = null;
  #onEnd: Set<() => void> | undefined;

  constructor(request: RegisterRequest, generation: bigint, { context, reason }: Origin) {
    this.name = request.name;
    this.handle = request.handle;
    this.byteSize = request.byteSize;
    this.offset = request.offset ?? 0n;
    this.generation = generation;
    this.owner = context.owner;
    this.session = context.session ?? null;
    this.protocol = context.protocol;
    this.labels = request.labels === undefined ? noLabels : new Map(request.labels);
    this.exporter = request.exporter ?? null;
    this.leaseMs = request.leaseMs ?? null;
    this.isDryRun = request.isDryRun === true;
    this.reason = reason;
  }

  /** Why nobody waits for the register any more, so that it has to be undone. */
  get abandoned(): RegistryError | undefined {
    return this.#abandoned;
  }

  /** Whether the name will be free once the driver is done. */
  get isRollingBack(): boolean {
    return this.state === "registering" && (this.#abandoned !== undefined || this.isDryRun);
  }

  /** Answers the caller of the register with `error` and has it undone, unless it is too late for that. */
  abandon(error: RegistryError): void {
    if (this.state !== "registering" || this.#committing || this.#abandoned !== undefined) return;
    this.#abandoned = error;
    this.onAbandon?.(error);
    this.#onAbandoned?.();
  }

  /** The register is over: what its caller waited for would stay as long as the region. */
  forgetCaller(): void {
    this.onAbandon = undefined;
    this.settled = done;
  }

  /** Resolves when it is abandoned. */
  whenAbandoned(): Promise<void> {
    return new Promise((resolve) => {
      this.#onAbandoned = resolve;
    });
  }

  /** From here on it is too late to abandon; false if that was done already. */
  beginCommit(): boolean {
    this.#committing = this.#abandoned === undefined;
    return this.#committing;
  }

  get pins(): number {
    return this.#pins?.size ?? 0;
  }

  addPin(pin: Pin, now: number): void {
    this.#pins ??= new Set();
    this.#pins.add(pin);
    this.#lastUsedAt = now;
  }

  removePin(pin: Pin, now: number): void {
    this.#pins?.delete(pin);
    this.#lastUsedAt = now;
  }

  /** Takes the memory from whoever uses it; each pin is removed once its last copy has ended. */
  revokePins(): void {
    for (const pin of [...(this.#pins ?? [])]) pin.revoke();
  }

  /** The region as it is shown; while registering, as it will be. */
  get status(): RegionStatus {
    return this.statusAs(this.lastState, this.reason);
  }

  /** The state, or the last that it had. */
  get lastState(): RegionState {
    return this.state === "gone" ? "draining" : this.state;
  }

  /** The region as it will be shown in `state`. */
  statusAs(state: RegionState, reason: ChangeReason): RegionStatus {
    return {
      name: this.name,
      deviceId: this.deviceId,
      deviceUuid: this.deviceUuid,
      byteSize: this.byteSize,
      offset: this.offset,
      allocationByteSize: this.mapping?.mapping.byteSize ?? 0n,
      state,
      reason,
      generation: this.generation,
      owner: this.owner,
      session: this.session,
      protocol: this.protocol,
      registeredAt: this.registeredAt ?? 0,
      lastUsedAt: this.#lastUsedAt,
      leaseMs: this.leaseMs,
      leaseExpiresAt: this.leaseExpiresAt,
      pins: this.pins,
      labels: this.labels,
      exporter: this.exporter,
      isVerified: this.isVerified,
      handle: this.handle,
    };
  }

  /** Moves to `state`, for `reason`. */
  enter(state: RegionState | "gone", reason: ChangeReason): void {
    this.state = state;
    this.reason = reason;
    if (state !== "gone" && state !== "close_failed") return;
    const waiting = this.#onEnd ?? [];
    this.#onEnd = undefined;
    for (const wake of waiting) wake();
  }

  /** Resolves when its close has succeeded or failed. */
  untilEnded(): Promise<void> {
    return new Promise((resolve) => this.onEnded(resolve));
  }

  /** Calls `run` when its close has succeeded or failed, unless the returned function was called before. */
  onEnded(run: () => void): () => void {
    this.#onEnd ??= new Set();
    this.#onEnd.add(run);
    return () => this.#onEnd?.delete(run);
  }
}
