import { nearest } from "../core/nearest.js";
import { environmentName, type Option, type OptionTable, type OptionValues } from "./option.js";
import { UsageError } from "./usage-error.js";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface OptionsRead<Table extends OptionTable> {
  readonly values: OptionValues<Table>;
  /** Sentences for the log: settings that were accepted and do nothing. */
  readonly warnings: readonly string[];
}

/**
 * Reads `--flag value`, `--flag=value` and the CUDASHM_* variables; the command line beats the environment,
 * a later flag beats an earlier one but of a list, an empty variable counts as unset. `check` says what is wrong with
 * values that are each right. Throws one UsageError with every problem.
 */
export function readOptions<Table extends OptionTable>(
  table: Table,
  args: readonly string[],
  env: Environment,
  check: (values: OptionValues<Table>) => readonly string[] = () => [],
): OptionsRead<Table> {
  const problems: string[] = [];
  const given = new Map<Option<unknown>, unknown>();
  const takeInto =
    (values: Map<Option<unknown>, unknown>) =>
    (option: Option<unknown>, source: string, text: string): void => {
      const { kind } = option;
      const value = kind.parse(text);
      const got = kind.isSecret ? "something else" : JSON.stringify(text);
      if (value === null) problems.push(`${source}: expected ${kind.expected}, got ${got}`);
      else if (kind.isList) {
        values.set(option, [...((values.get(option) as unknown[]) ?? []), ...(value as unknown[])]);
      } else values.set(option, value);
    };

  const options: readonly Option<unknown>[] = Object.values(table);
  for (const option of options) {
    const name = environmentName(option.flag);
    const text = env[name];
    if (text !== undefined && text !== "") takeInto(given)(option, name, text);
  }
  // A list on the command line replaces the one in the environment, and does not add to it.
  const fromArguments = new Map<Option<unknown>, unknown>();
  readArguments(options, args, takeInto(fromArguments), problems);
  for (const [option, value] of fromArguments) given.set(option, value);

  const values = Object.fromEntries(
    Object.entries(table).map(([key, option]) => [
      key,
      given.has(option) ? given.get(option) : option.default,
    ]),
  ) as OptionValues<Table>;
  if (problems.length === 0) problems.push(...check(values));
  if (problems.length > 0) throw new UsageError(problems);
  return {
    values: Object.freeze(values),
    warnings: options
      .filter((option) => option.withoutEffect !== undefined && given.has(option))
      .map((option) => `--${option.flag} has no effect: ${option.withoutEffect}`),
  };
}

function readArguments(
  options: readonly Option<unknown>[],
  args: readonly string[],
  take: (option: Option<unknown>, source: string, text: string) => void,
  problems: string[],
): void {
  const byFlag = new Map(options.map((option) => [option.flag, option]));
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? "";
    if (!arg.startsWith("-") || arg === "-" || arg === "--") {
      problems.push(`unexpected argument ${JSON.stringify(arg)}`);
      continue;
    }
    const equals = arg.indexOf("=");
    const dashed = equals === -1 ? arg : arg.slice(0, equals);
    const next = args[i + 1];
    const option = dashed.startsWith("--") ? byFlag.get(dashed.slice(2)) : undefined;
    if (option === undefined) {
      const meant = nearest(dashed.replace(/^-+/, ""), byFlag.keys());
      problems.push(`unknown option ${dashed}${meant === null ? "" : `; did you mean --${meant}?`}`);
      // What follows is most likely its value: one mistake, one problem.
      if (equals === -1 && next !== undefined && !next.startsWith("-")) i++;
    } else if (equals !== -1) {
      take(option, dashed, arg.slice(equals + 1));
    } else if (option.kind.isSwitch && (next === undefined || next.startsWith("-"))) {
      take(option, dashed, "true");
    } else if (next === undefined || next.startsWith("--")) {
      problems.push(`${dashed}: expected ${option.kind.expected}, got nothing`);
    } else {
      take(option, dashed, next);
      i++;
    }
  }
}
