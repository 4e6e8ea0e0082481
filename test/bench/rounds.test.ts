import { expect, test } from "vitest";
import type { Contender, Row, Sample } from "../../bench/case.js";
import { runRow } from "../../bench/rounds.js";

/** Answers the samples one after the other, the last of them for ever, and notes that it was asked. */
function scripted(name: string, samples: readonly Sample[], asked: string[] = []): Contender {
  let at = 0;
  return {
    name,
    async measure() {
      asked.push(name);
      return samples[Math.min(at++, samples.length - 1)] ?? { value: Number.NaN };
    },
  };
}

function row(contenders: Row["contenders"], more: Partial<Row> = {}): Row {
  return { name: "row", unit: "a second", better: "more", contenders, ...more };
}

test("contenders take turns, after one measurement of each that does not count", async () => {
  const asked: string[] = [];
  const [ours, theirs] = [
    scripted("ours", [{ value: 1 }, { value: 20 }], asked),
    scripted("theirs", [{ value: 1 }, { value: 10 }], asked),
  ];
  const result = await runRow(row([ours, theirs]), 2);
  expect(asked).toEqual(["ours", "theirs", "ours", "theirs", "ours", "theirs"]);
  expect(result.contenders.map(({ value }) => value.values)).toEqual([
    [20, 20],
    [10, 10],
  ]);
});

test("a row that takes long has fewer rounds, and no warm-up if it wants none", async () => {
  const asked: string[] = [];
  const limits = { atMostRounds: 2, warmUp: false };
  expect((await runRow(row([scripted("ours", [{ value: 1 }], asked)], limits), 7)).rounds).toBe(2);
  expect(asked).toHaveLength(2);
});

test("ratios are made in each round, and above 1 the product is better, whatever the unit", async () => {
  const samples = [
    { value: 10, cpuMicros: 1 },
    { value: 40, cpuMicros: 2 },
    { value: 90, cpuMicros: 9 },
  ];
  const contenders = () =>
    [scripted("ours", samples), scripted("theirs", [{ value: 10, cpuMicros: 3 }])] as const;
  const more = await runRow(row([...contenders()], { warmUp: false }), 3);
  expect(more.contenders[1]?.ratio?.values).toEqual([1, 4, 9]);
  expect(more.contenders[1]?.ratio?.median).toBe(4);
  expect(more.contenders[1]?.cpuRatio?.median).toBe(1.5);
  expect(more.contenders[0]?.ratio).toBeNull();

  const less = await runRow(row([...contenders()], { warmUp: false, better: "less" }), 3);
  expect(less.contenders[1]?.ratio?.values).toEqual([1, 0.25, 1 / 9]);
});

test("what is not measured in every round has no figure", async () => {
  const partly = [{ value: 1, cpuMicros: 1 }, { value: 1 }];
  const result = await runRow(row([scripted("ours", partly)], { warmUp: false }), 2);
  expect(result.contenders[0]?.cpuMicros).toBeNull();
});

test("a target is a ratio's median, or a limit on the median or on every round", async () => {
  const samples = [10, 12, 30].map((value) => ({ value, more: { delay: value } }));
  const contenders = [scripted("ours", samples), scripted("theirs", [{ value: 10 }])] as const;
  const result = await runRow(
    row([...contenders], {
      warmUp: false,
      targets: [
        { against: "theirs", atLeast: 1.2 },
        { against: "theirs", atLeast: 1.3 },
        { figure: "delay", below: 20, of: "median" },
        { figure: "delay", below: 20, of: "max" },
        { figure: "a second", below: 13, of: "median" },
        { figure: "no such figure", below: 1000, of: "median" },
        { against: "nobody", atLeast: 0 },
      ],
    }),
    3,
  );
  expect(result.targets.map(({ met }) => met)).toEqual([true, false, true, false, true, false, false]);
});

test("derived figures are made of the samples of one round", async () => {
  const contenders = [
    scripted("ours", [{ value: 5 }, { value: 9 }]),
    scripted("theirs", [{ value: 3 }]),
  ] as const;
  const result = await runRow(
    row([...contenders], {
      warmUp: false,
      derive: (round) => ({ rest: (round.get("ours")?.value ?? 0) - (round.get("theirs")?.value ?? 0) }),
    }),
    2,
  );
  expect(result.derived.rest?.values).toEqual([2, 6]);
});
