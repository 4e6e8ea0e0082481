import { LosslessNumber } from "lossless-json";
import { RegistryError } from "../../core/errors.js";
import { maxUint64, parseUint64 } from "../uint64.js";
import { unknownWord } from "./unknown-word.js";

const decimalSeconds = /^(\d+)(?:\.(\d{1,3}))?$/;

/** An object in a request's JSON, of which every member has to be known. Each method throws INVALID_ARGUMENT. */
export class Members<Name extends string> {
  readonly #members: Readonly<Record<string, unknown>>;
  /** What leads to a member. */
  readonly #path: string;

  /** `path` is where the object is; the root of the body has none. */
  constructor(value: unknown, known: readonly Name[], path?: string) {
    if (!isObject(value)) throw refusal(`${path === undefined ? "the body" : `'${path}'`} must be an object`);
    for (const member of Object.keys(value)) {
      if (!(known as readonly string[]).includes(member)) throw unknownWord("member", member, known);
    }
    this.#members = value;
    this.#path = path === undefined ? "" : `${path}.`;
  }

  /** What `read` made of the member. Throws if there is none. */
  required<T>(name: Name, value: T | undefined): T {
    if (value === undefined) throw refusal(`'${this.#path}${name}' is missing`);
    return value;
  }

  /** The member as it is. */
  value(name: Name): unknown {
    return Object.hasOwn(this.#members, name) ? this.#members[name] : undefined;
  }

  /** A whole number from 0 to `max`. */
  whole(name: Name, max = maxUint64): bigint | undefined {
    const value = this.value(name);
    if (value === undefined) return undefined;
    const number = value instanceof LosslessNumber ? parseUint64(value.value) : null;
    if (number === null || number > max) throw this.#refusal(name, `a whole number from 0 to ${max}`);
    return number;
  }

  /** Seconds, as milliseconds. */
  seconds(name: Name): number | undefined {
    const value = this.value(name);
    if (value === undefined) return undefined;
    const digits = value instanceof LosslessNumber ? decimalSeconds.exec(value.value) : null;
    if (digits === null) throw this.#refusal(name, "a number of seconds with at most 3 decimals");
    const [, whole = "", fraction = ""] = digits;
    return Number(whole) * 1000 + Number(fraction.padEnd(3, "0"));
  }

  text(name: Name): string | undefined {
    const value = this.value(name);
    if (value !== undefined && typeof value !== "string") throw this.#refusal(name, "a string");
    return value;
  }

  flag(name: Name): boolean | undefined {
    const value = this.value(name);
    if (value !== undefined && typeof value !== "boolean") throw this.#refusal(name, "true or false");
    return value;
  }

  /** An object whose members are strings of any name. */
  texts(name: Name): ReadonlyMap<string, string> | undefined {
    const value = this.value(name);
    if (value === undefined) return undefined;
    if (!isObject(value)) throw this.#refusal(name, "an object");
    return new Map(
      Object.entries(value).map(([key, text]) => {
        if (typeof text !== "string") throw this.#refusal(name, "an object of strings");
        return [key, text];
      }),
    );
  }

  #refusal(name: Name, expected: string): RegistryError {
    return refusal(`'${this.#path}${name}' must be ${expected}`);
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof LosslessNumber)
  );
}

function refusal(text: string): RegistryError {
  return new RegistryError("INVALID_ARGUMENT", text);
}
