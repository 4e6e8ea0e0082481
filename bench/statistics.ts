/** The rounds of one figure. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  /** In the order of the rounds. */
  readonly values: readonly number[];
}

/** Throws RangeError if there is no value. */
export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const [min, max] = [sorted[0], sorted.at(-1)];
  if (min === undefined || max === undefined) throw new RangeError("no value to take the median of");
  return { median: quantile(sorted, 0.5), min, max, values };
}

/** The value below which the share `q` of `sorted` lies, between its neighbours where it falls between two. */
export function quantile(sorted: ArrayLike<number>, q: number): number {
  const at = q * (sorted.length - 1);
  const [low, high] = [Math.floor(at), Math.ceil(at)];
  const [from, to] = [sorted[low], sorted[high]];
  if (from === undefined || to === undefined) throw new RangeError("no value to take the quantile of");
  return from + (to - from) * (at - low);
}
