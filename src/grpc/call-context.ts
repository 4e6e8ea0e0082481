import { type Deadline, Metadata } from "@grpc/grpc-js";
import { CallAbort, type CallSignal } from "../core/abort.js";
import type { ApiCategory } from "../core/api-category.js";
import { anonymousCaller, type Caller } from "../core/caller.js";
import { RegistryError } from "../core/errors.js";
import type { FaceContext } from "../core/face-context.js";
import type { Gate } from "../core/gate.js";
import type { CallContext } from "../core/region.js";
import type { RegionRegistry } from "../core/registry.js";
import { clientRequestId, requestIdHeader } from "../core/request-ids.js";
import type { OperationObserver, RequestOutcome } from "../core/request-observer.js";
import type { HeaderSource } from "../core/restrictions.js";
import { metadataHeader } from "./metadata-header.js";
import type { OpenCall, OpenCalls } from "./open-calls.js";

/** What the calls of a method pass, and as which group of calls. */
export interface Entrance {
  readonly gate: Gate;
  readonly category: ApiCategory;
  readonly operation: OperationObserver | undefined;
}

/** Skips what Metadata checks of a value: ids have been looked at, or are ours. */
class RequestIdTrailers extends Metadata {
  constructor(requestId: string) {
    super();
    this.internalRepr.set(requestIdHeader, [requestId]);
  }

  /** Each is sent once, so that there is nobody to keep another for. */
  override clone(): Metadata {
    return this;
  }
}

/** What grpc-js's calls of every kind have. */
export interface ServerCall {
  readonly cancelled: boolean;
  readonly metadata: Metadata;
  getDeadline(): Deadline;
  on(event: "cancelled", listener: () => void): unknown;
}

/** A call as the core sees it. */
export class GrpcCallContext implements CallContext, HeaderSource, OpenCall {
  readonly protocol = "grpc";
  readonly requestId: string;
  readonly #call: ServerCall;
  readonly #openCalls: OpenCalls;
  readonly #entrance: Entrance;
  readonly #registry: RegionRegistry;
  readonly #startedAt: number;
  #caller: Caller = anonymousCaller;
  #entered = false;
  #abort: CallAbort | undefined;

  constructor(face: FaceContext, call: ServerCall, openCalls: OpenCalls, entrance: Entrance) {
    this.#call = call;
    this.requestId = clientRequestId(this.header(requestIdHeader)) ?? face.nextRequestId();
    this.#openCalls = openCalls;
    this.#entrance = entrance;
    this.#registry = face.registry;
    this.#startedAt = entrance.operation?.begin() ?? 0;
    openCalls.begin();
  }

  get owner(): string {
    return this.#caller.owner;
  }

  get isAdmin(): boolean {
    return this.#caller.isAdmin;
  }

  get session(): string | null {
    return this.#caller.session;
  }

  /**
   * Whether the library has answered that the deadline passed, or is about to. It gives a call to its handler when the
   * peer has sent all of it, however late that is, and tells nobody then that the call is over.
   */
  get isTooLate(): boolean {
    // Its timer may ring a millisecond early by this clock.
    return Date.now() + 1 >= Number(this.#call.getDeadline());
  }

  /** Passes the gate; throws its refusal. */
  enter(): void {
    const { gate, category } = this.#entrance;
    this.#caller = gate.enter(category, this, this.#registry.sessions);
    this.#entered = true;
  }

  header(name: string): string | undefined {
    return metadataHeader(this.#call.metadata, name);
  }

  /**
   * Aborted with CANCELLED, DEADLINE_EXCEEDED or UNAVAILABLE as a RegistryError. Made when first asked for:
   * most calls are answered without waiting and need none.
   */
  get signal(): CallSignal {
    if (this.#abort === undefined) {
      this.#abort = new CallAbort();
      if (this.#call.cancelled) this.#cancel();
      else this.#call.on("cancelled", () => this.#cancel());
      this.#openCalls.add(this);
    }
    return this.#abort;
  }

  abort(reason: RegistryError): void {
    this.#abort?.abort(reason);
  }

  /** Lets another call in while this one goes on, which something else puts a limit to. */
  makeRoom(): void {
    if (this.#entered) this.#entrance.gate.leave(this.#entrance.category);
    this.#entered = false;
  }

  /** The call has its answer: nothing aborts it from now on. Called once. */
  finish(outcome: RequestOutcome): void {
    this.#entrance.operation?.end(this.#startedAt, outcome, this.requestId);
    this.makeRoom();
    this.#openCalls.end();
    if (this.#abort === undefined) return;
    this.#abort = undefined;
    this.#openCalls.delete(this);
  }

  trailers(): Metadata {
    return new RequestIdTrailers(this.requestId);
  }

  #cancel(): void {
    // Also told of calls that were answered; making an error for each of those would cost more than the call.
    if (this.#abort === undefined) return;
    this.abort(
      this.isTooLate
        ? new RegistryError("DEADLINE_EXCEEDED", "the deadline passed before the call was done")
        : new RegistryError("CANCELLED", "the client cancelled the call"),
    );
  }
}
