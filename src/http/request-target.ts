import { RegistryError } from "../core/errors.js";
import { quoteRegionName } from "../core/region-name.js";

/** The two parts of a request target that matter here, both undecoded. */
export interface RequestTarget {
  readonly path: string;
  readonly query: string;
}

const schemeAndAuthority = /^[a-z][a-z0-9+.-]*:\/\/[^/?]*/i;

/**
 * Splits a request target as it came over the wire. A URL parser would fold `/region/../unregister` into the
 * path that unregisters everything; this folds nothing.
 */
export function splitTarget(target: string): RequestTarget {
  const origin = target.charCodeAt(0) === 47 ? target : originForm(target);
  const mark = origin.indexOf("?");
  if (mark === -1) return { path: origin, query: "" };
  return { path: origin.slice(0, mark), query: origin.slice(mark + 1) };
}

/** An absolute target as it would be without its authority, where a path that is empty is a slash. */
function originForm(target: string): string {
  const rest = target.replace(schemeAndAuthority, "");
  return rest === "" || rest.startsWith("?") ? `/${rest}` : rest;
}

/**
 * The region's name in a path of the form `<prefix>{name}`, whatever comes after the next slash, decoded once as
 * UTF-8. Throws INVALID_ARGUMENT if it has a malformed escape or escapes that are not UTF-8.
 */
export function nameInPath(path: string, prefix: string): string {
  const end = path.indexOf("/", prefix.length);
  const segment = path.slice(prefix.length, end === -1 ? undefined : end);
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch (cause) {
    const text = `the region name ${quoteRegionName(segment)} in the path is not percent-encoded UTF-8`;
    throw new RegistryError("INVALID_ARGUMENT", text, { cause });
  }
}
