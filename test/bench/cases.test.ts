import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, test } from "vitest";
import { cases } from "../../bench/cases.js";
import type { CaseResult } from "../../bench/report.js";
import type { Spread } from "../../bench/statistics.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

// The C++ server is built by the first run.
const timeout = 900_000;

beforeAll(() => {
  const { status, stdout } = spawnSync("node_modules/.bin/tsc", ["-p", "bench/tsconfig.json"], {
    cwd: root,
    encoding: "utf8",
  });
  expect(stdout).toBe("");
  expect(status).toBe(0);
});

function runTiny(name: string): CaseResult {
  const args = ["dist-bench/run.js", "--tiny", "--json", name];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" });
  expect(status, stderr).toBe(0);
  const { cases: results } = JSON.parse(stdout) as { cases: CaseResult[] };
  expect(results).toHaveLength(1);
  return results[0] as CaseResult;
}

describe("in a tiny form every case of the benchmark yields its figures", () => {
  test.each(cases.map(({ name }) => name))("%s", { timeout }, (name) => {
    const { rows } = runTiny(name);
    expect(rows.length).toBeGreaterThan(0);
    for (const row of rows) {
      if ("skipped" in row) {
        // Not every machine has a C++ gRPC library.
        expect(name).toBe("grpc-cpp");
        expect(row.skipped).toContain("npm run setup:clients");
        continue;
      }
      expect(row.contenders.length, row.name).toBeGreaterThan(1);
      for (const { name: contender, value, ratio, more } of row.contenders) {
        const spreads = [value, ...(ratio === null ? [] : [ratio]), ...Object.values(more)];
        expect(spreads.every(isFigure), `${row.name}: ${contender}`).toBe(true);
      }
      expect(Object.values(row.derived).every(isFigure), row.name).toBe(true);
    }
  });
});

test("a row that there is none of is an error that names the rows, and the last run's figures stay", () => {
  const latest = `${root}bench/results/latest.json`;
  const figures = () => (existsSync(latest) ? readFileSync(latest, "utf8") : null);
  const before = figures();
  const args = ["dist-bench/run.js", "core", "--json", "--row", "zzz"];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" });
  expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
  expect(stderr).toMatch(/^bench: no row has 'zzz' in its name; there are\n {2}\S/m);
  expect(figures()).toBe(before);
});

// JSON has no NaN and no Infinity: they come as null.
function isFigure({ median, min, max, values }: Spread): boolean {
  return [median, min, max, ...values].every((value) => typeof value === "number");
}

test("docs/performance.md has every case", () => {
  const page = readFileSync(`${root}docs/performance.md`, "utf8");
  for (const { name } of cases) expect(page).toContain(`\`${name}\``);
});
