import { type Finding, type FindingStatus, worst } from "./finding.js";

/** Everything that was found. */
export interface Report {
  readonly version: string;
  /** The worst of the findings. */
  readonly status: FindingStatus;
  readonly findings: readonly Finding[];
}

export function createReport(version: string, findings: readonly Finding[]): Report {
  return { version, status: worst(findings.map(({ status }) => status)), findings };
}

/** The report as one line of JSON, as docs/doctor.md describes it. `schema` grows when that changes. */
export function reportJson({ version, status, findings }: Report): string {
  const told = findings.map(({ advice, ...finding }) => (advice === null ? finding : { ...finding, advice }));
  return `${JSON.stringify({ schema: 1, version, status, findings: told })}\n`;
}

const width = 100;

/** The report for people: a finding a paragraph, what to do indented below it. */
export function reportText(report: Report): string {
  const { findings, version } = report;
  const names = Math.max(...findings.map(({ check }) => check.length));
  const paragraphs = findings.map(({ check, status, text, advice }) => {
    const start = `${status.padEnd(4)}  ${check.replaceAll("_", " ").padEnd(names)}  `;
    const lines = [
      ...wrap(text, width - start.length),
      ...(advice === null ? [] : arrow(advice, start.length)),
    ];
    return lines.map((line, index) => `${index === 0 ? start : " ".repeat(start.length)}${line}\n`).join("");
  });
  const count = (status: FindingStatus) => findings.filter((finding) => finding.status === status).length;
  const sum = `${count("OK")} OK, ${count("WARN")} WARN, ${count("FAIL")} FAIL`;
  return `cudashm doctor ${version}\n\n${paragraphs.join("")}\n${sum}\n`;
}

function arrow(advice: string, indent: number): string[] {
  return wrap(advice, width - indent - 3).map((line, index) => `${index === 0 ? "-> " : "   "}${line}`);
}

/** Breaks at blanks; a word that is longer than a line, such as a path, stays whole. */
function wrap(text: string, columns: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/)) {
    if (line !== "" && line.length + 1 + word.length > columns) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}
