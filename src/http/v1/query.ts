import { RegistryError } from "../../core/errors.js";
import { maxUint64, parseUint64 } from "../uint64.js";
import { unknownWord } from "./unknown-word.js";

/** The parameters of a query, decoded. */
export type Query<Name extends string> = Readonly<Partial<Record<Name, string>>>;

const unitMs = { ms: 1, s: 1000, m: 60_000 } as const;
const duration = /^(\d{1,9})(ms|s|m)$/;

/** Reads a query. Throws INVALID_ARGUMENT for a parameter that is unknown, is given twice, or has a malformed escape. */
export function readQuery<Name extends string>(query: string, known: readonly Name[]): Query<Name> {
  const values: Partial<Record<Name, string>> = {};
  for (const parameter of query.split("&")) {
    if (parameter === "") continue;
    const sign = parameter.indexOf("=");
    const name = decode(sign === -1 ? parameter : parameter.slice(0, sign));
    if (!isOneOf(known, name)) throw unknownWord("query parameter", name, known);
    if (Object.hasOwn(values, name)) throw refusal(`'${name}' must be given at most once`);
    values[name] = sign === -1 ? "" : decode(parameter.slice(sign + 1));
  }
  return values;
}

/** A text; undefined where it is empty, which says as little as leaving it out. */
export function textIn<Name extends string>(query: Query<Name>, name: Name): string | undefined {
  return query[name] || undefined;
}

/** One of some words. Throws INVALID_ARGUMENT, as all that follow do. */
export function wordIn<Name extends string, Word extends string>(
  query: Query<Name>,
  name: Name,
  words: readonly Word[],
): Word | undefined {
  const text: string | undefined = query[name];
  if (text === undefined) return undefined;
  if (isOneOf(words, text)) return text;
  throw refusal(`'${name}' must be one of ${words.join(", ")}`);
}

/** An unsigned 64-bit number. */
export function uint64In<Name extends string>(query: Query<Name>, name: Name): bigint | undefined {
  const text = query[name];
  if (text === undefined) return undefined;
  const value = parseUint64(text);
  if (value === null) throw refusal(`'${name}' must be a whole number from 0 to ${maxUint64}`);
  return value;
}

/** A duration such as `5s`, in milliseconds. */
export function durationIn<Name extends string>(query: Query<Name>, name: Name): number | undefined {
  const text = query[name];
  if (text === undefined) return undefined;
  const [, digits, unit] = duration.exec(text) ?? [];
  if (unit === undefined) throw refusal(`'${name}' must be a duration such as 5s, 1500ms or 2m`);
  return Number(digits) * unitMs[unit as keyof typeof unitMs];
}

/** `true` or `false`. */
export function flagIn<Name extends string>(query: Query<Name>, name: Name): boolean | undefined {
  const text = query[name];
  if (text === undefined) return undefined;
  if (text !== "true" && text !== "false") throw refusal(`'${name}' must be true or false`);
  return text === "true";
}

function isOneOf<Word extends string>(words: readonly Word[], text: string): text is Word {
  return (words as readonly string[]).includes(text);
}

/** As forms have it: a plus is a blank. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch (cause) {
    const problem = "the query is not percent-encoded UTF-8";
    throw new RegistryError("INVALID_ARGUMENT", problem, { cause });
  }
}

function refusal(text: string): RegistryError {
  return new RegistryError("INVALID_ARGUMENT", text);
}
