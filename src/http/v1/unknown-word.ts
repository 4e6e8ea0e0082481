import { RegistryError } from "../../core/errors.js";
import { nearest } from "../../core/nearest.js";

/** Longer than any word that is known; finding what is nearest takes its time. */
const maxWordLength = 64;

/**
 * Refuses a word that is none of those known. It is repeated only if it is nearly one of them: else it may be
 * anything, a handle among others.
 */
export function unknownWord(what: string, word: string, known: readonly string[]): RegistryError {
  const meant = word.length > maxWordLength ? null : nearest(word, known);
  const expected = known.length === 0 ? "none is expected" : `expected are ${known.join(", ")}`;
  const text =
    meant === null ? `unknown ${what}; ${expected}` : `unknown ${what} '${word}'; did you mean '${meant}'?`;
  return new RegistryError("INVALID_ARGUMENT", text);
}
