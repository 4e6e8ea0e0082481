/** A value at a time, in seconds. */
export interface Point {
  readonly at: number;
  readonly value: number;
}

/**
 * By how much the values grow along their trend, from the first point to the last: the median of the slopes between
 * any two points, so that a single odd one counts for nothing.
 */
export function growthAlongTrend(points: readonly Point[]): number {
  const slopes: number[] = [];
  for (const [index, later] of points.entries()) {
    for (const { at, value } of points.slice(0, index)) slopes.push((later.value - value) / (later.at - at));
  }
  slopes.sort((a, b) => a - b);
  const slope = slopes[Math.floor(slopes.length / 2)] ?? 0;
  return slope * ((points.at(-1)?.at ?? 0) - (points[0]?.at ?? 0));
}

/** The points that say something about drift: those after the first third of the time. */
export function afterWarmUp(points: readonly Point[], totalSeconds: number): readonly Point[] {
  return points.filter(({ at }) => at >= totalSeconds / 3);
}
