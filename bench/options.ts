import { parseArgs } from "node:util";

export interface BenchOptions {
  /** Names, or parts of names, of the cases to run; none is all of them. */
  readonly cases: readonly string[];
  /** Only rows with this in their names; empty is all of them. */
  readonly row: string;
  readonly rounds: number;
  readonly seconds: number;
  readonly json: boolean;
  readonly profile: boolean;
  readonly tiny: boolean;
  readonly list: boolean;
  readonly help: boolean;
}

export const usage = `Usage: npm run bench -- [CASE...] [options]

Measures the service beside baselines that do the same with less, in alternating rounds, each server and the load in
processes of their own. A CASE is a case's name, or a part of several.

  --list           print the cases
  --row TEXT       only the rows with this in their name, such as "status of one" or "100000 regions"
  --rounds N       how often each contender is measured (7)
  --seconds S      how long one measurement lasts (1)
  --json           print JSON, which bench/results/latest.json gets in any case but of --tiny
  --profile        keep CPU profiles of the servers in bench/results/profiles; they cost time, so read no figure then
  --tiny           one short round of tiny sizes: shows that everything works, and nothing else
`;

/** Throws an error that says what is wrong. */
export function readBenchOptions(args: readonly string[]): BenchOptions {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      row: { type: "string", default: "" },
      rounds: { type: "string" },
      seconds: { type: "string" },
      json: { type: "boolean", default: false },
      profile: { type: "boolean", default: false },
      tiny: { type: "boolean", default: false },
      list: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const { rounds, seconds, ...flags } = values;
  return {
    ...flags,
    cases: positionals,
    rounds: positive("--rounds", rounds, flags.tiny ? 1 : 7, Number.isInteger),
    seconds: positive("--seconds", seconds, flags.tiny ? 0.05 : 1, Number.isFinite),
  };
}

function positive(
  flag: string,
  text: string | undefined,
  otherwise: number,
  isGood: (value: number) => boolean,
): number {
  if (text === undefined) return otherwise;
  const value = Number(text);
  if (isGood(value) && value > 0) return value;
  throw new Error(`${flag}: expected a number above 0, got '${text}'`);
}

/** Those with such a name, or else every one with a part of it in its name. Throws if there is none. */
export function matching<Named extends { readonly name: string }>(
  all: readonly Named[],
  wanted: readonly string[],
): readonly Named[] {
  if (wanted.length === 0) return all;
  const found = new Set<Named>();
  for (const word of wanted) {
    const exact = all.filter(({ name }) => name === word);
    const matches = exact.length > 0 ? exact : all.filter(({ name }) => name.includes(word));
    if (matches.length === 0) {
      throw new Error(
        `no case has '${word}' in its name; there are ${all.map(({ name }) => name).join(", ")}`,
      );
    }
    for (const match of matches) found.add(match);
  }
  return all.filter((one) => found.has(one));
}

/** What is wrong where no row of the cases has `wanted` in its name. */
export function noSuchRow(wanted: string, names: readonly string[]): string {
  const rows = names.map((name) => `\n  ${name}`).join("");
  return `no row has '${wanted}' in its name; there are${rows}`;
}
