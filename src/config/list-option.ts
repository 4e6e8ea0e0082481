import type { OptionKind } from "./option.js";

/** Any number of values: the flag may be repeated, and one text may have several with blanks in between. */
export function list<T>(
  kind: Pick<OptionKind<T>, "placeholder" | "expected" | "isSecret" | "parse">,
): OptionKind<readonly T[]> {
  return {
    ...kind,
    isSwitch: false,
    isList: true,
    parse(text) {
      const values: T[] = [];
      for (const word of text.split(/\s+/)) {
        const value = word === "" ? null : kind.parse(word);
        if (value === null) return null;
        values.push(value);
      }
      return values;
    },
  };
}
