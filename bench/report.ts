import type { Skipped } from "./case.js";
import type { ContenderResult, RowResult } from "./rounds.js";
import type { Spread } from "./statistics.js";

/** One case, measured. */
export interface CaseResult {
  readonly name: string;
  readonly title: string;
  readonly rows: readonly (RowResult | Skipped)[];
}

/** The case as Markdown that reads well on a terminal too. */
export function formatCase({ name, title, rows }: CaseResult): string {
  return [`## ${name}: ${title}`, ...rows.map(formatRow)].join("\n\n");
}

function formatRow(row: RowResult | Skipped): string {
  if ("skipped" in row) return `### ${row.name}\n\nSkipped: ${row.skipped}`;
  const figures = [...new Set(row.contenders.flatMap(({ more }) => Object.keys(more)))];
  const heading = [
    "",
    `${row.unit}, median`,
    "min..max",
    "ratio",
    "CPU us",
    "CPU ratio",
    "load's CPU",
    ...figures,
  ];
  const lines = row.contenders.map((contender) => formatContender(contender, figures));
  const derived = Object.entries(row.derived).map(
    ([figure, spread]) => `* ${figure}: ${figureText(spread.median)} (${rangeText(spread)})`,
  );
  const targets = row.targets.map(({ text, met }) => `* target ${met ? "met" : "MISSED"}: ${text}`);
  return [
    `### ${row.name}`,
    table([heading, ...lines]),
    ...(derived.length + targets.length === 0 ? [] : [[...derived, ...targets].join("\n")]),
    ...(row.note === undefined ? [] : [row.note]),
  ].join("\n\n");
}

function formatContender(contender: ContenderResult, figures: readonly string[]): string[] {
  const { name, value, ratio, cpuMicros, cpuRatio, loadCpu, more } = contender;
  const median = (spread: Spread | null | undefined) => (spread ? figureText(spread.median) : "");
  return [
    name,
    median(value),
    rangeText(value),
    ratio?.median.toFixed(2) ?? "",
    median(cpuMicros),
    cpuRatio?.median.toFixed(2) ?? "",
    loadCpu === null ? "" : `${Math.round(loadCpu.median * 100)} %`,
    ...figures.map((figure) => median(more[figure])),
  ];
}

function rangeText({ min, max }: Spread): string {
  return `${figureText(min)}..${figureText(max)}`;
}

/** Three digits are more than two rounds agree on. */
function figureText(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.max(Math.abs(value), 0.01))));
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** Pads the columns; those with nothing in any line are left out. */
function table(lines: readonly (readonly string[])[]): string {
  const [heading = [], ...body] = lines;
  const columns = heading.map((_, at) => at).filter((at) => body.some((line) => (line[at] ?? "") !== ""));
  const widths = columns.map((at) => Math.max(3, ...lines.map((line) => line[at]?.length ?? 0)));
  const format = (line: readonly string[]) => {
    const cells = columns.map((at, column) => {
      const [text, width] = [line[at] ?? "", widths[column] ?? 0];
      return column === 0 ? text.padEnd(width) : text.padStart(width);
    });
    return `| ${cells.join(" | ")} |`;
  };
  const rule = widths.map((width, column) =>
    column === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`,
  );
  return [format(heading), `| ${rule.join(" | ")} |`, ...body.map(format)].join("\n");
}

/** The last line: how many targets were met. */
export function formatTally(results: readonly CaseResult[]): string {
  const rows = results.flatMap((result) => result.rows);
  const targets = rows.flatMap((row) => ("skipped" in row ? [] : row.targets));
  const met = targets.filter((target) => target.met).length;
  const skipped = rows.filter((row) => "skipped" in row).length;
  return `targets: ${met} met, ${targets.length - met} missed; rows skipped: ${skipped}`;
}
