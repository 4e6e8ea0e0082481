import { anonymous, type CallContext } from "./region.js";

/** Who may do what with whose regions. */
export interface RegistryPolicy {
  /** `owner`: regions are changed by those alone who own them, and shown to them alone. `shared`: Triton's way. */
  readonly access: "shared" | "owner";
  /** Which regions an unregister of all takes: Triton's `all`, the caller's `own`, or `none`: it is refused. */
  readonly unregisterAll: "all" | "own" | "none";
}

/** Triton's way. */
export const openPolicy: RegistryPolicy = { access: "shared", unregisterAll: "all" };

/** Whose a region is. */
export interface Owned {
  readonly owner: string;
  readonly session: string | null;
}

/** Who a caller is. */
type Who = Pick<CallContext, "owner" | "session" | "isAdmin">;

/** Whether the caller may do as it likes with the region: its owner, an admin, or anyone if it is nobody's. */
export function mayTouch({ owner, session, isAdmin }: Who, region: Owned): boolean {
  if (region.owner === anonymous || region.owner === owner || isAdmin === true) return true;
  return region.session !== null && region.session === session;
}

/** Whether the caller may see and change the region as far as Triton's calls go. */
export function maySee(policy: RegistryPolicy, context: Who, region: Owned): boolean {
  return maySeeAll(policy, context) || isOwn(context, region);
}

/** Whether the caller sees the regions of everyone. */
export function maySeeAll({ access }: RegistryPolicy, { isAdmin }: Pick<Who, "isAdmin">): boolean {
  return access === "shared" || isAdmin === true;
}

/** Whether the caller owns the region, which an admin does not of what others registered. */
export function isOwn({ owner, session }: Pick<Who, "owner" | "session">, region: Owned): boolean {
  return region.owner === owner || (region.session !== null && region.session === session);
}
