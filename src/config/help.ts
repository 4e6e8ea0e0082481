import { environmentName, type OptionTable } from "./option.js";

/** One option as help and the README show it. */
export interface OptionRow {
  /** With its dashes and what it takes, such as `--http-port PORT`. */
  readonly flag: string;
  readonly env: string;
  /** Empty if it has none. */
  readonly default: string;
  readonly group: string;
  readonly help: string;
}

/** The rows of a table of options, in its order. */
export function optionRows(table: OptionTable): readonly OptionRow[] {
  return Object.values(table).map((option) => ({
    flag: `--${option.flag} ${option.kind.placeholder}`,
    env: environmentName(option.flag),
    default: option.default === null ? "" : String(option.default),
    group: option.group,
    help:
      option.withoutEffect === undefined ? option.help : `${option.help} No effect: ${option.withoutEffect}.`,
  }));
}

const helpWidth = 100;
const indent = 6;

/** The options of a command for `--help`: grouped, wrapped, each with its variable and default. */
export function optionsHelp(table: OptionTable): string {
  const lines: string[] = [];
  let group: string | null = null;
  for (const row of optionRows(table)) {
    if (row.group !== group) lines.push("", `${row.group}:`);
    group = row.group;
    lines.push(`  ${row.flag}`);
    const facts = row.default === "" ? row.env : `default ${row.default}; ${row.env}`;
    lines.push(...wrap(`${row.help} [${facts}]`));
  }
  return `${lines.join("\n")}\n`;
}

function wrap(text: string): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && indent + line.length + 1 + word.length > helpWidth) {
      lines.push(" ".repeat(indent) + line);
      line = "";
    }
    line += line === "" ? word : ` ${word}`;
  }
  lines.push(" ".repeat(indent) + line);
  return lines;
}
