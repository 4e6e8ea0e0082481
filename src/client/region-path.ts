import { invalidArgument } from "./errors.js";

/**
 * `name` as one segment of a path. Throws INVALID_ARGUMENT, in the service's words, for the names that no URL can
 * carry: without one, or with one that URL parsers fold away, `/region/{name}/unregister` would name another path.
 */
export function regionSegment(name: string): string {
  if (name === "") throw invalidArgument("the region name is empty");
  if (name === "." || name === "..") {
    throw invalidArgument(`'${name}' is not allowed as a region name: URL parsers fold it away`);
  }
  try {
    return encodeURIComponent(name);
  } catch (cause) {
    throw invalidArgument("the region name has an unpaired surrogate", cause);
  }
}
