import { RegistryError } from "./errors.js";

/** Longest region name, in bytes of UTF-8. */
export const maxRegionNameBytes = 1024;

// biome-ignore lint/suspicious/noControlCharactersInRegex: refusing them is the point.
const controlCharacter = /[\u0000-\u001f\u007f-\u009f]/;
const controlCharacters = new RegExp(controlCharacter, "g");

/**
 * Why `name` cannot be a region's name, or null if it can. Names are never normalised or folded: any two
 * different strings are two regions. `.` and `..` are refused because clients and proxies fold
 * `/region/../unregister` into the path that unregisters everything.
 */
export function regionNameProblem(name: string): string | null {
  if (name === "") return "the region name is empty";
  if (name === "." || name === "..")
    return `'${name}' is not allowed as a region name: URL parsers fold it away`;
  if (!name.isWellFormed()) return "the region name has an unpaired surrogate";
  if (controlCharacter.test(name)) return "the region name has a control character";
  const bytes = Buffer.byteLength(name);
  if (bytes > maxRegionNameBytes) {
    return `the region name has ${bytes} bytes of UTF-8, at most ${maxRegionNameBytes} are allowed`;
  }
  return null;
}

/** Throws INVALID_ARGUMENT with the reason if `name` cannot be a region's name. */
export function assertRegionName(name: string): void {
  const problem = regionNameProblem(name);
  if (problem !== null) throw new RegistryError("INVALID_ARGUMENT", problem);
}

/**
 * `name` in quotes, as it may stand in a message or a log line: with control characters escaped, unpaired
 * surrogates replaced, and cut short where no region could have it.
 */
export function quoteRegionName(name: string): string {
  const shown = Buffer.byteLength(name) > maxRegionNameBytes ? `${name.slice(0, 64)}...` : name;
  return `'${shown.toWellFormed().replace(controlCharacters, escapeCharacter)}'`;
}

function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** Orders names by their UTF-8 bytes, which JavaScript's own order (UTF-16 units) does not. */
export function compareRegionNames(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) {
      // A surrogate pair encodes a code point above every other unit, so surrogates sort last.
      const xIsSurrogate = x >= 0xd800 && x <= 0xdfff;
      const yIsSurrogate = y >= 0xd800 && y <= 0xdfff;
      return xIsSurrogate === yIsSurrogate ? x - y : xIsSurrogate ? 1 : -1;
    }
  }
  return a.length - b.length;
}
