import { invalidArgument } from "./errors.js";

/** The query of a path, without the parameters that are undefined; empty if all are. Throws INVALID_ARGUMENT. */
export function query(parameters: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(parameters).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  const written = given.map(([name, value]) => {
    if (!value.isWellFormed()) throw invalidArgument(`${name} has an unpaired surrogate`);
    return `${name}=${encodeURIComponent(value)}`;
  });
  return written.length === 0 ? "" : `?${written.join("&")}`;
}
