import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { checks, type Finding } from "../../src/doctor/finding.js";
import { runCommand } from "../helpers/cudashm.js";

const doc = readFileSync(new URL("../../docs/doctor.md", import.meta.url), "utf8");

/** The rows of the table of checks: each check's facts, as the document names them. */
const documented = new Map(
  [...doc.matchAll(/^\| `(\w+)`[^|]*\|[^|]*\|([^|]*)\|$/gm)].map(([, check, facts]) => [
    check,
    [...(facts ?? "").replace(/\([^)]*\)/g, "").matchAll(/`(\w+)`/g)].map(([, fact]) => fact),
  ]),
);

test("docs/doctor.md lists every check there is, in the order of the report, and no other", () => {
  expect([...documented.keys()]).toEqual(checks);
});

test("the facts of every finding are those that docs/doctor.md lists", async () => {
  const { code, lines } = await runCommand(["doctor", "--json", "--driver=emulated"]);
  expect(code).toBe(0);
  const { findings } = JSON.parse(lines[0] ?? "") as { findings: readonly Finding[] };
  expect(findings.map(({ check }) => check)).toEqual(checks);
  for (const { check, facts } of findings)
    expect([check, Object.keys(facts)]).toEqual([check, documented.get(check)]);
});

test("the report that docs/doctor.md shows has the members of a real one", async () => {
  const [, example] = /```json\n([\s\S]*?)```/.exec(doc) ?? [];
  const { lines } = await runCommand(["doctor", "--json", "--driver=cuda", "--driver-library=/nowhere"]);
  const [shown, real] = [JSON.parse(example ?? ""), JSON.parse(lines[0] ?? "")];
  const withAdvice = real.findings.find((finding: Finding) => finding.status !== "OK");
  expect(Object.keys(shown)).toEqual(Object.keys(real));
  expect(Object.keys(shown.findings[0]).sort()).toEqual(Object.keys(withAdvice).sort());
});
