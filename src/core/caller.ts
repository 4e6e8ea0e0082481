import { anonymous } from "./region.js";

/** Who makes a call. */
export interface Caller {
  /** Who owns what the call registers: a token's name, `session:` and an id, or anonymous. */
  readonly owner: string;
  /** Whether it may do as it likes with regions of others. */
  readonly isAdmin: boolean;
  /** The id of the session that the call belongs to. */
  readonly session: string | null;
}

/** A caller of whom nothing is known. */
export const anonymousCaller: Caller = Object.freeze({ owner: anonymous, isAdmin: false, session: null });
