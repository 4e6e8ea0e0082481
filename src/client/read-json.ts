/** The members of a JSON object. */
export type Members = Readonly<Record<string, unknown>>;

const stringOrNumber = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const digits = /^\d+$/;
const seconds = /^\d+(?:\.\d+)?$/;

/** Parses JSON with every number as a string of its digits: JSON.parse would round those above 2^53. */
export function parseExact(json: string): unknown {
  const exact = json.replace(stringOrNumber, (token) => (token.startsWith('"') ? token : `"${token}"`));
  return JSON.parse(exact);
}

/** What {@link parseExact} gave as an object. Throws if it is none. */
export function membersOf(value: unknown): Members {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Members;
  throw new TypeError("not an object");
}

/** A string. This and all below throw if the member is missing or something else. */
export function text(members: Members, name: string): string {
  const value = members[name];
  if (typeof value === "string") return value;
  throw unexpected(name);
}

/** A whole number, exact. */
export function whole(members: Members, name: string): bigint {
  const value = members[name];
  if (typeof value === "string" && digits.test(value)) return BigInt(value);
  throw unexpected(name);
}

/** A whole number that is small. */
export function count(members: Members, name: string): number {
  const value = Number(whole(members, name));
  if (Number.isSafeInteger(value)) return value;
  throw unexpected(name);
}

export function yesOrNo(members: Members, name: string): boolean {
  const value = members[name];
  if (typeof value === "boolean") return value;
  throw unexpected(name);
}

/** Seconds, as milliseconds. */
export function milliseconds(members: Members, name: string): number {
  const value = text(members, name);
  if (seconds.test(value)) return Math.round(Number(value) * 1000);
  throw unexpected(name);
}

export function time(members: Members, name: string): Date {
  const value = new Date(text(members, name));
  if (!Number.isNaN(value.getTime())) return value;
  throw unexpected(name);
}

/** An array, each of its elements decoded. */
export function list<T>(members: Members, name: string, decode: (element: unknown) => T): readonly T[] {
  const value = members[name];
  if (Array.isArray(value)) return value.map(decode);
  throw unexpected(name);
}

/** What `read` gives, or null where the member is null. */
export function orNull<T>(
  members: Members,
  name: string,
  read: (members: Members, name: string) => T,
): T | null {
  return members[name] === null ? null : read(members, name);
}

/** What `read` gives, or undefined where there is no such member. */
export function orMissing<T>(
  members: Members,
  name: string,
  read: (members: Members, name: string) => T,
): T | undefined {
  return members[name] === undefined ? undefined : read(members, name);
}

function unexpected(name: string): TypeError {
  return new TypeError(`${name} is missing, or not what it should be`);
}
