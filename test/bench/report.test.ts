import { expect, test } from "vitest";
import { type CaseResult, formatCase, formatTally } from "../../bench/report.js";
import { spreadOf } from "../../bench/statistics.js";

const result: CaseResult = {
  name: "http",
  title: "pairs",
  rows: [
    {
      name: "a row",
      unit: "pairs/s",
      better: "more",
      rounds: 3,
      contenders: [
        {
          name: "cudashm",
          value: spreadOf([12_345.6, 12_000, 13_000]),
          cpuMicros: spreadOf([30.25]),
          loadCpu: spreadOf([0.42]),
          more: { "p99 us": spreadOf([0.5]) },
          ratio: null,
          cpuRatio: null,
        },
        {
          name: "other",
          value: spreadOf([10_000]),
          cpuMicros: null,
          loadCpu: null,
          more: {},
          ratio: spreadOf([1.23456]),
          cpuRatio: null,
        },
      ],
      derived: { "rest us": spreadOf([7]) },
      targets: [
        { text: "1.23 of other, at least 1", met: true },
        { text: "1.23 of other, at least 2", met: false },
      ],
      note: "Said below.",
    },
    { name: "another row", skipped: "there is no compiler" },
  ],
};

test("a case is a Markdown table a row, without the columns that nobody has figures for", () => {
  expect(formatCase(result)).toBe(`## http: pairs

### a row

|         | pairs/s, median |       min..max | ratio | CPU us | load's CPU | p99 us |
| ------- | --------------: | -------------: | ----: | -----: | ---------: | -----: |
| cudashm |          12,346 | 12,000..13,000 |       |   30.3 |       42 % |  0.500 |
| other   |          10,000 | 10,000..10,000 |  1.23 |        |            |        |

* rest us: 7.00 (7.00..7.00)
* target met: 1.23 of other, at least 1
* target MISSED: 1.23 of other, at least 2

Said below.

### another row

Skipped: there is no compiler`);
});

test("the last line counts the targets", () => {
  expect(formatTally([result])).toBe("targets: 1 met, 1 missed; rows skipped: 1");
});
