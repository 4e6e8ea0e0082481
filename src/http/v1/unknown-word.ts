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
  const text =
    meant === null
      ? `an unknown ${what}; there ${known.length === 1 ? "is" : "are"} ${known.join(", ")}`
      : `unknown ${what} '${word}'; did you mean '${meant}'?`;
  return new RegistryError("INVALID_ARGUMENT", text);
}
