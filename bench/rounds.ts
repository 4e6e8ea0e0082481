import type { Row, Sample, Target } from "./case.js";
import { type Spread, spreadOf } from "./statistics.js";

export interface ContenderResult {
  readonly name: string;
  readonly value: Spread;
  readonly cpuMicros: Spread | null;
  readonly loadCpu: Spread | null;
  readonly more: Readonly<Record<string, Spread>>;
  /** How good the product is beside this one, round by round: 1 is as good, more is better. Null for the product. */
  readonly ratio: Spread | null;
  /** The same by CPU time. */
  readonly cpuRatio: Spread | null;
}

interface TargetResult {
  readonly text: string;
  readonly met: boolean;
}

export interface RowResult extends Pick<Row, "name" | "unit" | "better" | "note"> {
  readonly rounds: number;
  readonly contenders: readonly ContenderResult[];
  readonly derived: Readonly<Record<string, Spread>>;
  readonly targets: readonly TargetResult[];
}

/** Measures the contenders in turn, round after round, so that what changes on the machine meanwhile meets all. */
export async function runRow(row: Row, rounds: number): Promise<RowResult> {
  if (row.warmUp !== false) for (const contender of row.contenders) await contender.measure();
  const played: Map<string, Sample>[] = [];
  while (played.length < Math.min(rounds, row.atMostRounds ?? rounds)) {
    const round = new Map<string, Sample>();
    for (const contender of row.contenders) round.set(contender.name, await contender.measure());
    played.push(round);
  }
  const [product, ...baselines] = row.contenders.map(({ name }) => samplesOf(name, played));
  if (product === undefined) throw new RangeError(`${row.name}: nobody to measure`);
  const contenders = [
    result(product, null, row.better),
    ...baselines.map((baseline) => result(baseline, product, row.better)),
  ];
  const derived = spreads(played.map((round) => row.derive?.(round) ?? {}));
  return {
    name: row.name,
    unit: row.unit,
    better: row.better,
    ...(row.note !== undefined && { note: row.note }),
    rounds: played.length,
    contenders,
    derived,
    targets: (row.targets ?? []).map((target) => judge(target, row.unit, contenders, derived)),
  };
}

interface Samples {
  readonly name: string;
  readonly samples: readonly Sample[];
}

function samplesOf(name: string, played: readonly ReadonlyMap<string, Sample>[]): Samples {
  return { name, samples: played.flatMap((round) => round.get(name) ?? []) };
}

function result({ name, samples }: Samples, product: Samples | null, better: Row["better"]): ContenderResult {
  const values = samples.map(({ value }) => value);
  const cpu = numbers(samples.map(({ cpuMicros }) => cpuMicros));
  const load = numbers(samples.map(({ loadCpu }) => loadCpu));
  const productCpu = numbers(product?.samples.map(({ cpuMicros }) => cpuMicros) ?? []);
  const productValues = product?.samples.map(({ value }) => value) ?? null;
  return {
    name,
    value: spreadOf(values),
    cpuMicros: cpu && spreadOf(cpu),
    loadCpu: load && spreadOf(load),
    more: spreads(samples.map(({ more }) => more ?? {})),
    ratio: productValues && spreadOf(ratios(productValues, values, better)),
    cpuRatio: cpu && productCpu && spreadOf(ratios(productCpu, cpu, "less")),
  };
}

/** Null unless there is one in every round. */
function numbers(values: readonly (number | null | undefined)[]): readonly number[] | null {
  const found = values.filter((value) => typeof value === "number");
  return found.length > 0 && found.length === values.length ? found : null;
}

function ratios(product: readonly number[], baseline: readonly number[], better: Row["better"]): number[] {
  return product.map((value, round) => {
    const other = baseline[round] ?? Number.NaN;
    return better === "more" ? value / other : other / value;
  });
}

function spreads(rounds: readonly Readonly<Record<string, number>>[]): Record<string, Spread> {
  const names = new Set(rounds.flatMap((round) => Object.keys(round)));
  return Object.fromEntries(
    [...names].map((name) => [name, spreadOf(rounds.flatMap((round) => round[name] ?? []))]),
  );
}

function judge(
  target: Target,
  unit: string,
  contenders: readonly ContenderResult[],
  derived: Readonly<Record<string, Spread>>,
): TargetResult {
  if ("against" in target) {
    const { against, atLeast } = target;
    const ratio = contenders.find(({ name }) => name === against)?.ratio?.median ?? Number.NaN;
    return { text: `${ratio.toFixed(2)} of ${against}, at least ${atLeast}`, met: ratio >= atLeast };
  }
  const { figure, below, of } = target;
  const product = contenders[0];
  const spread = figure === unit ? product?.value : (derived[figure] ?? product?.more[figure]);
  const value = spread?.[of] ?? Number.NaN;
  const which = of === "max" ? " in every round" : "";
  return { text: `${figure} ${value.toFixed(1)}, below ${below}${which}`, met: value < below };
}
