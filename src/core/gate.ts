import type { ApiCategory } from "./api-category.js";
import type { InFlight } from "./in-flight.js";
import type { Principals } from "./principals.js";
import { anonymous } from "./region.js";
import type { HeaderSource, Restrictions } from "./restrictions.js";

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

  /** Throws Triton's refusal of a call whose category is restricted. */
  checkRestricted(category: ApiCategory, call: HeaderSource): void {
    this.#restrictions?.check(category, call);
  }

  /** Who calls. Throws UNAUTHENTICATED if only those may who have a token, and this one has none. */
  identify(call: HeaderSource): string {
    return this.#principals === undefined ? anonymous : this.#principals().authenticate(call);
  }

  /**
   * Lets a call in, to be followed by one `leave`, and tells who calls. Throws the refusal of a restricted API,
   * UNAUTHENTICATED or RESOURCE_EXHAUSTED. Health is open to all: a supervisor has no token, and a busy service is
   * not a dead one.
   */
  enter(category: ApiCategory, call: HeaderSource): string {
    this.checkRestricted(category, call);
    if (category === "health") return anonymous;
    const owner = this.identify(call);
    this.#inFlight?.enter();
    return owner;
  }

  /** The call was answered. */
  leave(category: ApiCategory): void {
    if (category !== "health") this.#inFlight?.leave();
  }
}
