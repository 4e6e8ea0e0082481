import type { ApiCategory } from "./api-category.js";
import { anonymousCaller, type Caller } from "./caller.js";
import { RegistryError } from "./errors.js";
import type { InFlight } from "./in-flight.js";
import type { Principals } from "./principals.js";
import type { HeaderSource, Restrictions } from "./restrictions.js";
import { type Sessions, sessionHeader } from "./sessions.js";

/** Where gRPC's libraries put a value that they are given as bytes. */
const sessionBytesHeader = `${sessionHeader}-bin`;

export interface GateOptions {
  readonly restrictions?: Restrictions | undefined;
  /** Who may call as things are now; without it everyone may. */
  readonly principals?: (() => Principals) | undefined;
  readonly inFlight?: InFlight | undefined;
}

/** What every call of a face passes before anything is done for it. */
export class Gate {
  readonly #restrictions: Restrictions | undefined;
  readonly #principals: (() => Principals) | undefined;
  readonly #inFlight: InFlight | undefined;

  constructor({ restrictions, principals, inFlight }: GateOptions) {
    this.#restrictions = restrictions;
    this.#principals = principals;
    this.#inFlight = inFlight;
  }

  /** Whether it matters that those who entered leave. */
  get countsCalls(): boolean {
    return this.#inFlight !== undefined;
  }

  /** Throws Triton's refusal of a call whose category is restricted. */
  checkRestricted(category: ApiCategory, call: HeaderSource): void {
    this.#restrictions?.check(category, call);
  }

  /**
   * Who calls: by his token, where only those may who have one, and by the session that the call says it belongs
   * to. Throws UNAUTHENTICATED, or PERMISSION_DENIED for the session of another.
   */
  identify(call: HeaderSource, sessions: Sessions): Caller {
    const caller = this.#byToken(call);
    if (call.header(sessionBytesHeader) !== undefined) {
      // Its client believes to be in the session: what it registers would not go with that.
      throw new RegistryError("UNAUTHENTICATED", `a session's secret is text; send it as ${sessionHeader}`);
    }
    const secret = call.header(sessionHeader);
    if (secret === undefined) return caller;
    const { id, owner } = sessions.identify(secret, caller.owner);
    return { owner, isAdmin: caller.isAdmin, session: id };
  }

  /**
   * Lets a call in, to be followed by one `leave`, and tells who calls. Throws the refusal of a restricted API,
   * what `identify` throws, or RESOURCE_EXHAUSTED. Health is open to all: a supervisor has no token, and a busy
   * service is not a dead one.
   */
  enter(category: ApiCategory, call: HeaderSource, sessions: Sessions): Caller {
    this.checkRestricted(category, call);
    if (category === "health") return anonymousCaller;
    const caller = this.identify(call, sessions);
    this.#inFlight?.enter();
    return caller;
  }

  /** The call was answered. */
  leave(category: ApiCategory): void {
    if (category !== "health") this.#inFlight?.leave();
  }

  #byToken(call: HeaderSource): Caller {
    if (this.#principals === undefined) return anonymousCaller;
    const { name, isAdmin } = this.#principals().authenticate(call);
    return { owner: name, isAdmin, session: null };
  }
}

/** Lets everyone in. */
export const openGate = new Gate({});
