import { invalidArgument } from "./errors.js";

/**
 * `name` as one segment of a path. Throws INVALID_ARGUMENT, in the service's words, for the names that no URL can
 * carry: without one, or with one that URL parsers fold away, `/region/{name}/unregister` would name another path.
 */
export function regionSegment(name: string): string {
  const problem = urlProblem(name);
  if (problem !== null) throw invalidArgument(problem);
  return encodeURIComponent(name);
}

/** The same for a register, whose refusals begin with what was refused. */
export function registerSegment(name: string): string {
  const problem = urlProblem(name);
  if (problem === null) return encodeURIComponent(name);
  throw invalidArgument(
    `failed to register shared memory region '${name.toWellFormed()}': invalid args: ${problem}`,
  );
}

function urlProblem(name: string): string | null {
  if (name === "") return "the region name is empty";
  if (name === "." || name === "..") {
    return `'${name}' is not allowed as a region name: URL parsers fold it away`;
  }
  return name.isWellFormed() ? null : "the region name has an unpaired surrogate";
}
