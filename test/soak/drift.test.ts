import { expect, test } from "vitest";
import { afterWarmUp, growthAlongTrend, type Point } from "./drift.js";

function points(values: readonly number[]): readonly Point[] {
  return values.map((value, index) => ({ at: 10 * (index + 1), value }));
}

test("growth is that of the trend, over all of the time", () => {
  expect(growthAlongTrend(points([100, 110, 120, 130, 140]))).toBe(40);
  expect(growthAlongTrend(points([140, 130, 120, 110, 100]))).toBe(-40);
});

test("values that go up and down around the same one do not grow", () => {
  expect(growthAlongTrend(points([100, 140, 100, 140, 100, 140, 100]))).toBe(0);
});

test("one odd value, be it the last, is no growth", () => {
  expect(growthAlongTrend(points([100, 100, 100, 100, 100, 900]))).toBe(0);
  expect(growthAlongTrend(points([100, 100, 900, 100, 100, 100]))).toBe(0);
});

test("slow growth shows under noise that is larger than each step", () => {
  const noise = [7, -9, 3, 8, -6, -4, 9, -8, 5, -3, 6, -7];
  const growing = noise.map((one, index) => 100 + 4 * index + one);
  expect(growthAlongTrend(points(growing))).toBeGreaterThan(30);
  expect(growthAlongTrend(points(noise.map((one) => 100 + one)))).toBeLessThan(15);
});

test("too few points have no trend", () => {
  expect(growthAlongTrend([])).toBe(0);
  expect(growthAlongTrend(points([100]))).toBe(0);
});

test("the first third of the time does not count", () => {
  expect(afterWarmUp(points([1, 2, 3, 4, 5, 6]), 60).map(({ value }) => value)).toEqual([2, 3, 4, 5, 6]);
});
